package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"quartermaster"
)

// Applied is what applying a document changed, or would have changed.
type Applied struct {
	DryRun   bool                       `json:"dryRun"`
	Revision int64                      `json:"revision"`
	Changes  []quartermaster.Difference `json:"changes"`
	Warnings []string                   `json:"warnings,omitempty"`
}

// ApplyOptions say how a document is applied.
type ApplyOptions struct {
	DryRun bool // only say what would change
	Prune  bool // remove what the document does not hold
}

// Apply puts a document into the project, all of it or nothing.
func (p *Project) Apply(ctx context.Context, doc quartermaster.Document, o ApplyOptions) (Applied, error) {
	return p.apply(ctx, doc, o)
}

// ApplyFrom is Apply with the document as a person has written it.
func (p *Project) ApplyFrom(ctx context.Context, written json.RawMessage, o ApplyOptions) (Applied, error) {
	return p.apply(ctx, written, o)
}

func (p *Project) apply(ctx context.Context, body any, o ApplyOptions) (Applied, error) {
	query := url.Values{"dryRun": {strconv.FormatBool(o.DryRun)}, "prune": {strconv.FormatBool(o.Prune)}}
	var answer Applied
	err := p.do(ctx, request{method: http.MethodPost, path: "/apply", query: query, body: body}, &answer)
	return answer, err
}

// Export reads the project as one document. It is raw, because the order of
// what stands in a schema is worth keeping.
func (p *Project) Export(ctx context.Context) (json.RawMessage, error) {
	var answer json.RawMessage
	err := p.do(ctx, request{method: http.MethodGet, path: "/export"}, &answer)
	return answer, err
}
