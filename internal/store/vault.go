package store

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// vault finds the key when it is needed. A database without secrets needs
// none: replicas that never share a secret need not share a key.
type vault struct {
	options Options
	mu      sync.Mutex
	found   *sealer
}

// unlock returns the sealer with this process's key; mayMake: the database has
// no secrets yet, so that any key is right.
func (v *vault) unlock(mayMake bool) (*sealer, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.found != nil {
		return v.found, nil
	}
	key, source, err := findKey(v.options, mayMake)
	if err != nil {
		return nil, err
	}
	v.found, err = newSealer(key, source)
	return v.found, err
}

// sealer seals values with AES-256-GCM.
type sealer struct {
	aead   cipher.AEAD
	source string // of the key
}

func newSealer(key []byte, source string) (*sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &sealer{aead, source}, nil
}

// sealVersion begins every sealed value, so that another way to seal can stand
// beside this one.
const sealVersion = "v1:"

// seal makes text of value that opens with the same key and place only.
func (s *sealer) seal(value, place string) string {
	sealed := s.aead.Seal(nil, nil, []byte(value), []byte(place)) //nolint:gosec // no nonce is given because this AEAD draws its own
	return sealVersion + base64.StdEncoding.EncodeToString(sealed)
}

var errSealed = errors.New("what is stored is not a value sealed with this key for this place")

// open undoes seal. Its error tells nothing of what is sealed.
func (s *sealer) open(sealed, place string) (string, error) {
	text, ok := strings.CutPrefix(sealed, sealVersion)
	if !ok {
		return "", errSealed
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", errSealed
	}
	value, err := s.aead.Open(nil, nil, data, []byte(place))
	if err != nil {
		return "", errSealed
	}
	return string(value), nil
}

// The first secret of a database is written together with a check value, by
// which every process can tell whether it has the key of that secret.
const (
	checkPlace = "vault" // no secret's place: those hold a NUL
	checkWord  = "quartermaster"
)

// check says whether sealed, the database's check value, is of this key.
func (s *sealer) check(sealed string) error {
	if word, err := s.open(sealed, checkPlace); err != nil || word != checkWord {
		return fmt.Errorf("the key in %s is not the one with which the secrets of this database are sealed; %s", s.source, wrongKeyRemedy)
	}
	return nil
}

const wrongKeyRemedy = "give the right one, as " + SecretKeyVariable + " or as the file secret.key in the data directory; " +
	"if it is lost, so are the secrets: empty the tables vault and secrets, and set them again"

// openVault refuses to start with a key that is missing, wrong or careless.
func (s *Store) openVault(ctx context.Context, o Options) error {
	s.vault = &vault{options: o}
	sealed, err := checkValue(ctx, s.write)
	if err != nil {
		return fmt.Errorf("look for the key of the secrets: %w", err)
	}
	if o.Database != "" && o.SecretKey == "" {
		s.log.Warn("secrets are sealed with a key that only this machine has; replicas need the same one: give it to all of them as "+SecretKeyVariable, "data", o.Data)
	}
	sealer, err := s.vault.unlock(false)
	switch {
	case errors.Is(err, errNoKey) && sealed == "":
		return nil // made with the first secret
	case err != nil:
		return err
	case sealed == "":
		return nil
	}
	return sealer.check(sealed)
}

// sealer is the key of the database's secrets, which the first one determines.
// It is asked for within the transaction that writes.
func (w *writer) sealer() (*sealer, error) {
	sealed, err := checkValue(w.ctx, w.tx)
	if err != nil {
		return nil, err
	}
	sealer, err := w.vault.unlock(sealed == "")
	if err != nil {
		return nil, noKey(err)
	}
	if sealed == "" {
		if err := w.exec(`INSERT INTO vault (id, check_value) VALUES (1, $1) ON CONFLICT (id) DO NOTHING`, sealer.seal(checkWord, checkPlace)); err != nil {
			return nil, err
		}
		if sealed, err = checkValue(w.ctx, w.tx); err != nil { // another process may have been first
			return nil, err
		}
	}
	if err := sealer.check(sealed); err != nil {
		return nil, noKey(err)
	}
	return sealer, nil
}

// checkValue is "" where there has never been a secret.
func checkValue(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) (string, error) {
	var sealed string
	err := db.QueryRowContext(ctx, `SELECT check_value FROM vault WHERE id = 1`).Scan(&sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return sealed, err
}
