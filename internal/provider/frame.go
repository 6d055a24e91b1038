package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// maxMessage bounds what one message of an upstream may take of our memory.
const maxMessage = 16 << 20

var errTooLarge = fmt.Errorf("sent a message larger than %d MiB", maxMessage>>20)

// maxNoise is how many bytes of something else than messages an upstream may
// send between two messages.
const maxNoise = 1 << 20

// frames is the stream that the SDK reads: what the upstream sends, message by
// message, each as carry makes it. What is no message is skipped, as other
// clients do: many servers greet on the channel that belongs to the protocol.
type frames struct {
	next  func() ([]byte, error) // the upstream's next message
	fail  func(error)            // told why the stream ends, where we end it
	rest  []byte
	noise int
	heard atomic.Pointer[string] // the last thing that was no message
	over  atomic.Bool            // the upstream has ended the stream
}

func (f *frames) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		message, err := f.next()
		if err != nil {
			f.over.Store(true)
			if errors.Is(err, errTooLarge) {
				f.fail(err)
			}
			return 0, err
		}
		all := messages(message)
		if len(all) == 0 {
			if err := f.skip(message); err != nil {
				return 0, err
			}
			continue
		}
		f.noise = 0
		for _, message := range all {
			f.rest = append(append(f.rest, carry(message)...), '\n')
		}
	}
	n := copy(p, f.rest)
	if f.rest = f.rest[n:]; len(f.rest) == 0 {
		f.rest = nil // a large message must not be kept until the next one
	}
	return n, nil
}

func (f *frames) skip(noise []byte) error {
	noise = bytes.TrimSpace(noise)
	if len(noise) == 0 {
		return nil
	}
	heard := string(noise[:min(len(noise), 80)])
	f.heard.Store(&heard)
	if f.noise += len(noise); f.noise > maxNoise {
		err := errors.New("speaks no JSON-RPC")
		f.fail(err)
		return err
	}
	return nil
}

// lines reads messages that end with a line break.
func lines(r io.Reader) func() ([]byte, error) {
	buffered := bufio.NewReader(r)
	return func() ([]byte, error) { return readLine(buffered, maxMessage) }
}

// readLine returns a line of at most limit bytes. The last one of a stream may
// lack its break.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, errTooLarge
		}
		line = append(line, part...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// stallLimit is how long an upstream may refuse to read what we send it. The
// SDK's write cannot be interrupted, and everybody else's waits behind it.
const stallLimit = 10 * time.Second

// unstuck ends the whole connection when a write hangs.
type unstuck struct {
	io.Writer
	fail func(error)
}

func (u unstuck) Write(p []byte) (int, error) {
	stalled := time.AfterFunc(stallLimit, func() {
		u.fail(fmt.Errorf("has not read what was sent to it for %v", stallLimit))
	})
	defer stalled.Stop()
	return u.Writer.Write(p)
}

// compact brings JSON onto one line.
func compact(data []byte) []byte {
	if bytes.IndexByte(data, '\n') < 0 {
		return data
	}
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return data
	}
	return b.Bytes()
}
