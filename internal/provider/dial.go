package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"quartermaster"
)

// dialPolicy says which addresses beside the public ones may be dialed.
type dialPolicy struct{ Private, Loopback bool }

// dialTimeout bounds one connection, all addresses of a name together.
const dialTimeout = 30 * time.Second

// guardedDialer refuses addresses that the policy does not allow. It looks at
// the address that is really dialed, after names were resolved: what a name or a
// redirect leads to may change between any earlier look and the dial (SEC-3).
func guardedDialer(allow dialPolicy) *net.Dialer {
	return &net.Dialer{
		Timeout: dialTimeout,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return allow.check(network, address)
		},
	}
}

// guardedDial is the same as a function, whose refusals also name the host.
func guardedDial(allow dialPolicy) func(ctx context.Context, network, address string) (net.Conn, error) {
	return namingHost(guardedDialer(allow))
}

func namingHost(dialer *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		var refused *refusedAddress
		if !errors.As(err, &refused) {
			return conn, err
		}
		host, _, _ := net.SplitHostPort(address)
		e := quartermaster.Errorf(quartermaster.CodeUnavailable, "cannot connect to %s: %v", host, refused)
		e.Cause = err
		return nil, e
	}
}

// refusedAddress is an address that was not dialed.
type refusedAddress struct {
	address string
	kind    addressKind
}

func (r *refusedAddress) Error() string {
	return fmt.Sprintf("%s is %s", r.address, kindTexts[r.kind])
}

func (allow dialPolicy) check(network, address string) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") {
		return &refusedAddress{address: network + " " + address, kind: kindUnusual}
	}
	kind := kindOf(target.Addr())
	switch {
	case kind == kindPublic,
		kind == kindPrivate && allow.Private,
		kind == kindLoopback && allow.Loopback:
		return nil
	}
	return &refusedAddress{address: target.Addr().String(), kind: kind}
}

// addressKind says who could answer at an address.
type addressKind int

const (
	kindPublic addressKind = iota
	kindPrivate
	kindLoopback
	kindUnusual
	kindLinkLocal
	kindMetadata
)

var kindTexts = map[addressKind]string{
	kindPublic:    "a public address",
	kindPrivate:   "a private address; to allow those, start the server with --upstream-private",
	kindLoopback:  "this machine itself, which is allowed in local mode only",
	kindUnusual:   "no address of a server, and never allowed",
	kindLinkLocal: "a link-local address, and those are never allowed",
	kindMetadata:  "where clouds hand out credentials, and never allowed",
}

// ranges are those with a meaning of their own; where several fit, the last one
// counts. The rest of IPv4 and of 2000::/3 is public, the rest of IPv6 is not.
var ranges = []struct {
	prefix netip.Prefix
	kind   addressKind
}{
	{netip.MustParsePrefix("0.0.0.0/8"), kindUnusual}, // reaches this machine
	{netip.MustParsePrefix("10.0.0.0/8"), kindPrivate},
	{netip.MustParsePrefix("100.64.0.0/10"), kindPrivate}, // carriers
	{netip.MustParsePrefix("100.100.100.200/32"), kindMetadata},
	{netip.MustParsePrefix("127.0.0.0/8"), kindLoopback},
	{netip.MustParsePrefix("168.63.129.16/32"), kindMetadata},
	{netip.MustParsePrefix("169.254.0.0/16"), kindLinkLocal},
	{netip.MustParsePrefix("169.254.169.254/32"), kindMetadata},
	{netip.MustParsePrefix("172.16.0.0/12"), kindPrivate},
	{netip.MustParsePrefix("192.0.0.0/24"), kindUnusual}, // protocols
	{netip.MustParsePrefix("192.0.0.192/32"), kindMetadata},
	{netip.MustParsePrefix("192.0.2.0/24"), kindUnusual}, // documentation
	{netip.MustParsePrefix("192.168.0.0/16"), kindPrivate},
	{netip.MustParsePrefix("198.18.0.0/15"), kindPrivate},   // benchmarks
	{netip.MustParsePrefix("198.51.100.0/24"), kindUnusual}, // documentation
	{netip.MustParsePrefix("203.0.113.0/24"), kindUnusual},  // documentation
	{netip.MustParsePrefix("224.0.0.0/3"), kindUnusual},     // multicast, reserved, broadcast
	{netip.MustParsePrefix("::1/128"), kindLoopback},
	{netip.MustParsePrefix("2001::/23"), kindUnusual},     // protocols, Teredo
	{netip.MustParsePrefix("2001:db8::/32"), kindUnusual}, // documentation
	{netip.MustParsePrefix("3fff::/20"), kindUnusual},     // documentation
	{netip.MustParsePrefix("fc00::/7"), kindPrivate},
	{netip.MustParsePrefix("fd00:ec2::254/128"), kindMetadata},
	{netip.MustParsePrefix("fd20:ce::254/128"), kindMetadata},
	{netip.MustParsePrefix("fe80::/10"), kindLinkLocal},
	{netip.MustParsePrefix("fec0::/10"), kindPrivate},
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	translated    = netip.MustParsePrefix("64:ff9b::/96") // NAT64
	tunneled      = netip.MustParsePrefix("2002::/16")    // 6to4
)

// kindOf judges an address. One that leads to an IPv4 address is that address.
func kindOf(a netip.Addr) addressKind {
	a = a.WithZone("").Unmap()
	kind, bytes := kindPublic, a.As16()
	switch {
	case translated.Contains(a):
		return kindOf(netip.AddrFrom4([4]byte(bytes[12:])))
	case tunneled.Contains(a):
		return kindOf(netip.AddrFrom4([4]byte(bytes[2:6])))
	case a.Is6() && !globalUnicast.Contains(a):
		kind = kindUnusual
	}
	for _, r := range ranges {
		if r.prefix.Contains(a) {
			kind = r.kind
		}
	}
	return kind
}
