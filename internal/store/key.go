package store

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// SecretKeyVariable is where operators put the key that replicas share.
const SecretKeyVariable = "QUARTERMASTER_SECRET_KEY"

const keySize = 32

// errNoKey means that there is no key, as opposed to one that is of no use.
var errNoKey = errors.New("there is no key for secrets")

// findKey returns the key that seals secrets and where it was found: given, or
// in a file of the data directory. The file is made only where no key has been
// used yet: a new one would open nothing and hide that the old one is missing.
func findKey(o Options, mayMake bool) (key []byte, source string, err error) {
	if o.SecretKey != "" {
		if key, err = parseKey(o.SecretKey); err != nil {
			return nil, "", fmt.Errorf("%s: %w", SecretKeyVariable, err)
		}
		return key, SecretKeyVariable, nil
	}
	if o.Data == "" {
		return nil, "", fmt.Errorf("%w; give one as %s, or a data directory to keep one in", errNoKey, SecretKeyVariable)
	}
	path := filepath.Join(o.Data, "secret.key")
	key, err = readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if !mayMake {
			return nil, "", fmt.Errorf("%w: %s is missing, but the secrets of this database are sealed; %s", errNoKey, path, wrongKeyRemedy)
		}
		key, err = makeKey(path)
	}
	return key, path, err
}

// parseKey reads 32 bytes as hex or any common kind of base64. No error holds
// what was read.
func parseKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if key, err := hex.DecodeString(text); err == nil && len(key) == keySize {
		return key, nil
	}
	plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	if key, err := base64.RawStdEncoding.DecodeString(plain); err == nil && len(key) == keySize {
		return key, nil
	}
	return nil, errors.New("must be 32 bytes as base64 or hex, such as: openssl rand -base64 32")
}

func readKey(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the key of the secrets: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the key of the secrets: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s can be used by others than its owner (mode %04o); take that away with: chmod 600 %s", path, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, 1024))
	if err != nil {
		return nil, fmt.Errorf("read the key of the secrets: %w", err)
	}
	key, err := parseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: the key %w", path, err)
	}
	return key, nil
}

// makeKey writes a new key, unless another process is faster: then it returns
// that one's. The file appears whole or not at all, and is on disk before
// anything is sealed with it.
func makeKey(path string) ([]byte, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the process instead
	partial, err := writePartial(dir, base64.StdEncoding.EncodeToString(key)+"\n")
	if err != nil {
		return nil, fmt.Errorf("write the key of the secrets: %w", err)
	}
	defer func() { _ = os.Remove(partial) }()
	err = os.Link(partial, path) // unlike a rename, never over another file
	if errors.Is(err, fs.ErrExist) {
		return readKey(path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("write the key of the secrets: %w", err)
	}
	return key, nil
}

// writePartial writes a file that only its owner can read.
func writePartial(dir, text string) (path string, err error) {
	f, err := os.CreateTemp(dir, "secret.key.partial-")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
