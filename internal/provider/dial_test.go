package provider

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"quartermaster"
)

// SEC-3: who could answer at an address, however it is written.
var addresses = map[string]addressKind{
	"1.1.1.1":                  kindPublic,
	"9.255.255.255":            kindPublic,
	"11.0.0.0":                 kindPublic,
	"100.63.255.255":           kindPublic,
	"100.128.0.0":              kindPublic,
	"126.255.255.255":          kindPublic,
	"128.0.0.0":                kindPublic,
	"169.253.255.255":          kindPublic,
	"169.255.0.0":              kindPublic,
	"172.15.255.255":           kindPublic,
	"172.32.0.0":               kindPublic,
	"192.167.255.255":          kindPublic,
	"192.169.0.0":              kindPublic,
	"223.255.255.255":          kindPublic,
	"2606:4700::1111":          kindPublic,
	"2a00:1450:4001::200e":     kindPublic,
	"::ffff:1.1.1.1":           kindPublic,
	"64:ff9b::1.1.1.1":         kindPublic,
	"2002:101:101::1":          kindPublic,
	"2001:4860:4860::8888":     kindPublic,
	"2606:4700::1111%eth0":     kindPublic,
	"10.0.0.0":                 kindPrivate,
	"10.255.255.255":           kindPrivate,
	"100.64.0.0":               kindPrivate,
	"100.127.255.255":          kindPrivate,
	"172.16.0.0":               kindPrivate,
	"172.31.255.255":           kindPrivate,
	"192.168.0.0":              kindPrivate,
	"192.168.255.255":          kindPrivate,
	"198.18.0.1":               kindPrivate,
	"fc00::1":                  kindPrivate,
	"fdff::1":                  kindPrivate,
	"fd00:ec2::253":            kindPrivate,
	"fec0::1":                  kindPrivate,
	"::ffff:10.0.0.1":          kindPrivate,
	"::ffff:a00:1":             kindPrivate,
	"64:ff9b::10.0.0.1":        kindPrivate,
	"2002:a00:1::1":            kindPrivate,
	"2002:c0a8:101::":          kindPrivate,
	"127.0.0.1":                kindLoopback,
	"127.255.255.255":          kindLoopback,
	"::1":                      kindLoopback,
	"::1%lo":                   kindLoopback,
	"::ffff:127.0.0.1":         kindLoopback,
	"64:ff9b::7f00:1":          kindLoopback,
	"2002:7f00:1::":            kindLoopback,
	"169.254.0.1":              kindLinkLocal,
	"169.254.255.255":          kindLinkLocal,
	"169.254.170.2":            kindLinkLocal,
	"::ffff:169.254.1.1":       kindLinkLocal,
	"64:ff9b::169.254.1.1":     kindLinkLocal,
	"2002:a9fe:101::":          kindLinkLocal,
	"fe80::1":                  kindLinkLocal,
	"fe80::1%eth0":             kindLinkLocal,
	"febf::1":                  kindLinkLocal,
	"169.254.169.254":          kindMetadata,
	"::ffff:169.254.169.254":   kindMetadata,
	"64:ff9b::a9fe:a9fe":       kindMetadata,
	"2002:a9fe:a9fe::":         kindMetadata,
	"100.100.100.200":          kindMetadata,
	"168.63.129.16":            kindMetadata,
	"192.0.0.192":              kindMetadata,
	"fd00:ec2::254":            kindMetadata,
	"fd00:ec2::254%eth0":       kindMetadata,
	"fd20:ce::254":             kindMetadata,
	"0.0.0.0":                  kindUnusual,
	"0.1.2.3":                  kindUnusual,
	"::":                       kindUnusual,
	"::ffff:0.0.0.0":           kindUnusual,
	"::127.0.0.1":              kindUnusual,
	"::ffff:0:127.0.0.1":       kindUnusual,
	"64:ff9b::":                kindUnusual,
	"64:ff9b:1::10.0.0.1":      kindUnusual,
	"2002::1":                  kindUnusual,
	"2001::1":                  kindUnusual,
	"2001:0:a9fe:a9fe::":       kindUnusual,
	"2001:db8::1":              kindUnusual,
	"3fff::1":                  kindUnusual,
	"100::1":                   kindUnusual,
	"5f00::1":                  kindUnusual,
	"192.0.0.8":                kindUnusual,
	"192.0.2.1":                kindUnusual,
	"198.51.100.1":             kindUnusual,
	"203.0.113.1":              kindUnusual,
	"224.0.0.1":                kindUnusual,
	"239.255.255.255":          kindUnusual,
	"240.0.0.1":                kindUnusual,
	"255.255.255.255":          kindUnusual,
	"::ffff:255.255.255.255":   kindUnusual,
	"::ffff:224.0.0.1":         kindUnusual,
	"64:ff9b::255.255.255.255": kindUnusual,
	"ff02::1":                  kindUnusual,
	"ff0e::1":                  kindUnusual,
}

func TestKindOfAddress(t *testing.T) {
	for text, want := range addresses {
		if got := kindOf(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is %s, want %s", text, kindTexts[got], kindTexts[want])
		}
	}
}

// SEC-3: only private and loopback addresses can be allowed, each by itself;
// the refusal names the address and what would allow it.
func TestDialPolicy(t *testing.T) {
	for text, kind := range addresses {
		addr := netip.MustParseAddr(text)
		for _, allow := range []dialPolicy{{}, {Private: true}, {Loopback: true}, {Private: true, Loopback: true}} {
			err := allow.check("tcp6", netip.AddrPortFrom(addr, 80).String())
			want := kind == kindPublic || kind == kindPrivate && allow.Private || kind == kindLoopback && allow.Loopback
			if (err == nil) != want {
				t.Errorf("%s with %+v: %v", text, allow, err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), addr.String()+" is ") {
				t.Errorf("%s: says %q", text, err)
			}
		}
	}
	for kind, want := range map[addressKind]string{kindPrivate: "--upstream-private", kindLoopback: "allowed in local mode only"} {
		if err := (&refusedAddress{kind: kind}).Error(); !strings.Contains(err, want) {
			t.Errorf("says %q, want %q", err, want)
		}
	}
	all := dialPolicy{Private: true, Loopback: true}
	for _, bad := range [][2]string{{"unix", "/run/docker.sock"}, {"udp4", "1.1.1.1:53"}, {"ip4", "1.1.1.1"}, {"tcp4", "localhost:80"}, {"tcp4", ""}} {
		if all.check(bad[0], bad[1]) == nil {
			t.Errorf("%q is allowed", bad)
		}
	}
}

// An address means the same in every notation that leads to the same machine,
// and whatever is link-local, multicast or unspecified is never allowed.
func FuzzDialPolicy(f *testing.F) {
	for text := range addresses {
		addr := netip.MustParseAddr(text).As16()
		f.Add(addr[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		addr, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		kind := kindOf(addr)
		plain := addr.Unmap()
		never := plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified()
		all := dialPolicy{Private: true, Loopback: true}
		if allowed := all.check("tcp6", netip.AddrPortFrom(addr, 1).String()) == nil; never && allowed {
			t.Fatalf("%s is allowed", addr)
		}
		if plain.IsPrivate() && kind == kindPublic || plain.IsLoopback() != (kind == kindLoopback) && plain.Is4() {
			t.Fatalf("%s is %s", addr, kindTexts[kind])
		}
		if plain.Is4() {
			v4 := binary.BigEndian.Uint32(plain.AsSlice())
			for _, same := range embeddings(v4) {
				if kindOf(same) != kind {
					t.Fatalf("%s is %s, but %s is %s", addr, kindTexts[kind], same, kindTexts[kindOf(same)])
				}
			}
		}
	})
}

// embeddings are the IPv6 addresses that lead to an IPv4 address.
func embeddings(v4 uint32) []netip.Addr {
	var mapped, translated, tunneled [16]byte
	copy(mapped[10:], []byte{0xff, 0xff})
	binary.BigEndian.PutUint32(mapped[12:], v4)
	copy(translated[:], []byte{0, 0x64, 0xff, 0x9b})
	binary.BigEndian.PutUint32(translated[12:], v4)
	copy(tunneled[:], []byte{0x20, 0x02})
	binary.BigEndian.PutUint32(tunneled[2:], v4)
	return []netip.Addr{netip.AddrFrom16(mapped), netip.AddrFrom16(translated), netip.AddrFrom16(tunneled)}
}

// names is a DNS server that answers every question for an IPv4 address with
// the next of its answers, and with the last one from then on.
func names(t *testing.T, answers ...[]string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		query := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			var found []string
			if binary.BigEndian.Uint16(query[questionEnd(query)-4:]) == typeA {
				found = answers[0]
				answers = answers[min(1, len(answers)-1):]
			}
			_, _ = server.WriteTo(answerTo(query[:n], found), from)
		}
	})
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", server.LocalAddr().String())
	}}
}

const typeA = 1

// questionEnd is where the one question of a message ends: behind a header of
// 12 bytes, labels with their lengths, a type and a class.
func questionEnd(message []byte) int {
	at := 12
	for message[at] != 0 {
		at += int(message[at]) + 1
	}
	return at + 5
}

func answerTo(query []byte, addresses []string) []byte {
	answer := slices.Clone(query[:questionEnd(query)])
	copy(answer[2:], []byte{0x81, 0x80, 0, 1, 0, byte(len(addresses)), 0, 0, 0, 0})
	for _, text := range addresses {
		answer = append(answer, 0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4) // the name asked for, for no time
		answer = append(answer, netip.MustParseAddr(text).AsSlice()...)
	}
	return answer
}

// web is a server at 127.0.0.1 and a client that may dial loopback addresses
// and asks these names.
func web(t *testing.T, resolver *net.Resolver, handler http.HandlerFunc) (port string, client *http.Client) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	dialer := guardedDialer(dialPolicy{Loopback: true})
	dialer.Resolver = resolver
	transport := &http.Transport{DialContext: namingHost(dialer), DisableKeepAlives: true}
	_, port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return port, &http.Client{Transport: transport}
}

// refusedBy returns what the refusal says.
func refusedBy(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	answer, err := client.Get(url)
	if err == nil {
		_ = answer.Body.Close()
		t.Fatalf("%s answered %s", url, answer.Status)
	}
	var refused *quartermaster.Error
	if !errors.As(err, &refused) || refused.Code != quartermaster.CodeUnavailable {
		t.Fatal(err)
	}
	return refused.Error()
}

// SEC-3: a name that was harmless when it was first asked for and is not when
// it is dialed again.
func TestDialRefusesReboundNames(t *testing.T) {
	for _, address := range []string{"169.254.169.254", "10.0.0.1", "0.0.0.0"} {
		t.Run(address, func(t *testing.T) {
			asked := atomic.Int32{}
			port, client := web(t, names(t, []string{"127.0.0.1"}, []string{address}), func(http.ResponseWriter, *http.Request) { asked.Add(1) })
			url := "http://harmless.test:" + port
			answer, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			said := refusedBy(t, client, url)
			if want := "cannot connect to harmless.test: " + address + " is "; !strings.HasPrefix(said, want) {
				t.Errorf("says %q, want %q", said, want)
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("the server was asked %d times", n)
			}
		})
	}
}

// SEC-3: a redirect leads nowhere that could not be dialed directly.
func TestDialRefusesRedirects(t *testing.T) {
	for _, target := range []string{"http://169.254.169.254/latest/meta-data/", "http://[::ffff:169.254.169.254]/", "http://inner.test/", "http://0.0.0.0/"} {
		t.Run(target, func(t *testing.T) {
			port, client := web(t, names(t, []string{"169.254.169.254"}), func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, target, http.StatusFound)
			})
			refusedBy(t, client, "http://127.0.0.1:"+port)
		})
	}
}

// A name with several addresses is reached at those that are allowed.
func TestDialTakesTheAllowedAddress(t *testing.T) {
	port, client := web(t, names(t, []string{"169.254.169.254", "127.0.0.1"}), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "here")
	})
	answer, err := client.Get("http://both.test:" + port)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); string(text) != "here" || err != nil {
		t.Error(string(text), err)
	}
}

// The door of production is the same: it names the host, too.
func TestGuardedDial(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	address := server.Listener.Addr().String()
	_, err := guardedDial(dialPolicy{Private: true})(t.Context(), "tcp", address)
	if err == nil || err.Error() != "cannot connect to 127.0.0.1: 127.0.0.1 is this machine itself, which is allowed in local mode only" {
		t.Error(err)
	}
	conn, err := guardedDial(dialPolicy{Loopback: true})(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if _, err := guardedDial(dialPolicy{Loopback: true, Private: true})(t.Context(), "unix", "/run/docker.sock"); err == nil {
		t.Error("a socket of this machine was dialed")
	}
}
