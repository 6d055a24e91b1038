package provider

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// body changes what an HTTP answer brings on its way to the SDK: each message
// is what carry makes of it, and none is larger than maxMessage.
type body struct {
	next func() ([]byte, error) // the next piece for the SDK
	rest []byte
	fail func(error)
	end  func() // once, when nobody reads any more
	once sync.Once
	src  io.Closer
}

func (b *body) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		piece, err := b.next()
		if err != nil {
			if errors.Is(err, errTooLarge) {
				b.fail(err)
			}
			b.once.Do(b.end)
			return 0, err
		}
		b.rest = piece
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *body) Close() error {
	b.once.Do(b.end)
	return b.src.Close()
}

// whole reads a body that is one message.
func whole(r io.Reader) func() ([]byte, error) {
	done := false
	return func() ([]byte, error) {
		if done {
			return nil, io.EOF
		}
		done = true
		data, err := io.ReadAll(io.LimitReader(r, maxMessage+1))
		if err != nil {
			return nil, err
		}
		if len(data) > maxMessage {
			return nil, errTooLarge
		}
		return carry(data), nil
	}
}

// eventStream reads server-sent events, one at a time. Lines that no event has
// are left out: the SDK would give up the connection for them.
func eventStream(r io.Reader) func() ([]byte, error) {
	buffered := bufio.NewReader(r)
	return func() ([]byte, error) {
		var fields, data []byte
		for size := 0; ; {
			line, err := readLine(buffered, maxMessage-size)
			if err != nil {
				if errors.Is(err, io.EOF) && len(fields)+len(data) > 0 {
					return event(fields, data), nil
				}
				return nil, err
			}
			size += len(line)
			line = bytes.TrimRight(line, "\r\n")
			name, value, _ := bytes.Cut(line, []byte(":"))
			switch string(name) {
			case "":
				if len(line) == 0 {
					return event(fields, data), nil
				}
			case "data":
				if data != nil {
					data = append(data, '\n')
				}
				data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
			case "event", "id", "retry":
				fields = append(append(append(fields, name...), ':'), append(value, '\n')...)
			}
		}
	}
}

// event writes an event as the SDK reads it.
func event(fields, data []byte) []byte {
	if len(data) > 0 {
		fields = append(append(append(fields, "data: "...), compact(carry(data))...), '\n')
	}
	return append(fields, '\n')
}
