package quartermaster

import (
	"slices"
	"strings"
	"testing"
)

// CAT-5, SEC-3: what is taken for a secret, by its key or by itself.
func TestLooksSecret(t *testing.T) {
	secret := map[string][]string{ // by key, with a value that says nothing
		"abc": {
			"TOKEN", "token", "GITHUB_TOKEN", "githubToken", "GITHUBTOKEN", "X-Auth-Token", "TOKENS", "TOKEN2", "token_1",
			"SECRET", "CLIENT_SECRET", "clientSecret", "PASSWORD", "PGPASSWORD", "DB_PASSWD", "DB_PASS", "SMTP_PWD", "PASSPHRASE", "SSH-KEY-PASSPHRASE",
			"API_KEY", "APIKEY", "ApiKey", "api-key", "X-API-Key", "x-apikey", "api.key", "API KEY", "OPENAI_KEY", "OPENAI_KEY_2", "Ocp-Apim-Subscription-Key",
			"ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "PRIVATE_KEY", "privateKey", "SIGNING_KEY",
			"Authorization", "authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "SESSION_COOKIE",
			"CREDENTIALS", "GOOGLE_APPLICATION_CREDENTIALS", "AUTH", "X-Auth", "OAUTH", "oauth2", "GITHUB_PAT", "JWT", "CONNECTION_STRING", "TOKENIZER_PASSWORD",
		},
	}
	for _, v := range []string{
		"Bearer abc", "bearer  abc", "BASIC dXNlcjpwYXNz", "Bearer a\nb", " Bearer abc",
		"sk-abcdef", "sk-proj-123", "ghp_abcd", "gho_abcd", "github_pat_11ABC", "xoxb-1234", "xoxp-1234", "glpat-abcd", "AKIAIOSFODNN7EXAMPLE",
		"-----BEGIN RSA PRIVATE KEY-----\nabc", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "a,ghp_abcd", `{"Authorization":"Bearer a1"}`, "--token=ghp_abcd",
		"postgres://u:p@db/x", "https://x.example/?api_key=1", "https://x.example/hook?token=1", "https://x.example/ghp_abcd/x",
	} {
		secret[v] = []string{"X", "MODE"}
	}
	for value, keys := range secret {
		for _, key := range keys {
			if _, hidden, ok := splitSecret(key, value); !ok || hidden == "" {
				t.Errorf("%s=%s is not taken for a secret", key, value)
			}
		}
	}
	for _, plain := range [][2]string{
		{"MODE", "quick"},
		{"X", ""},
		{"TOKEN", ""},
		{"TOKEN", " "},
		{"AUTHOR", "me"},
		{"PATH", "/bin"},
		{"HOME", "/"},
		{"KEY", "k"},
		{"KEYBOARD", "us"},
		{"MONKEY", "x"},
		{"PUBLIC_KEY", "abc"},
		{"SORT_KEY", "id"},
		{"Idempotency-Key", "1"},
		{"MAX_TOKENS", "4096"},
		{"TOKEN_TTL", "30s"},
		{"TOKENIZER", "bpe"},
		{"TOKEN_URL", "https://x.example/token"},
		{"PASSWORD_FILE", "/run/secrets/x"},
		{"PRIVATE_KEY_PATH", "k.pem"},
		{"AUTH_TYPE", "oauth"},
		{"AUTH_ENABLED", "1"},
		{"AUTH", "true"},
		{"OAUTH_CLIENT_ID", "abc"},
		{"COMPASS", "north"},
		{"PATTERN", "x"},
		{"LANG", "sk-SK"},
		{"X", "sk-"},
		{"X", "Bearer"},
		{"X", "Bearer "},
		{"DATABASE_URL", "postgres://u@db/x"},
		{"URL", "https://x.example/?q=1"},
		{"User-Agent", "x/1"},
		{"Accept", "application/json"},
		{"日本", "語"},
		{"API_KEY", "${K}"},
		{"Authorization", "Bearer ${K}"},
		{"PASSWORD", "${A}${B}"},
		{"DSN", "postgres://u:${P}@db"},
	} {
		if _, _, ok := splitSecret(plain[0], plain[1]); ok {
			t.Errorf("%s=%s is taken for a secret", plain[0], plain[1])
		}
	}
}

// CAT-5: what remains to be seen of a value.
func TestSplitSecret(t *testing.T) {
	for value, want := range map[string][2]string{
		"abc": {"", "abc"}, "Bearer abc": {"Bearer ", "abc"}, "bearer  a b": {"bearer  ", "a b"}, "Basic eA==": {"Basic ", "eA=="},
		"token abc": {"token ", "abc"}, "ApiKey abc": {"ApiKey ", "abc"}, "Bearer": {"", "Bearer"}, "Digest x": {"", "Digest x"}, "Bearer a\nb": {"Bearer ", "a\nb"},
	} {
		shown, hidden, ok := splitSecret("Authorization", value)
		if !ok || shown != want[0] || hidden != want[1] {
			t.Errorf("%q: %q %q, want %q", value, shown, hidden, want)
		}
	}
}

// Invariant 8: no secret in a URL, a path or argv; what only resembles one is let
// through.
func TestSecretFaults(t *testing.T) {
	for _, tt := range []struct {
		edit func(*Server)
		want string
	}{
		{func(s *Server) { s.URL = "https://x.example/mcp?api_key=hunter2" }, "url"},
		{func(s *Server) { s.URL = "https://x.example/mcp?a=1&Access-Token=hunter2" }, "url"},
		{func(s *Server) { s.URL = "https://x.example/mcp?key=hunter2" }, "url"},
		{func(s *Server) { s.URL = "https://x.example/mcp?api_key=${K}" }, "url"}, // nothing expands it there
		{func(s *Server) { s.URL = "https://x.example/mcp?x=ghp_hunter2" }, "url"},
		{func(s *Server) { s.URL = "https://x.example/mcp?ghp_hunter2" }, "url"},
		{func(s *Server) { s.URL = "https://x.example/ghp_hunter2/mcp" }, "url"},
		{func(s *Server) { s.URL = "https://u:hunter2@x.example" }, "url"},
		{func(s *Server) { s.URL = "https://x.example/mcp?x=1&api_key=" }, ""},
		{func(s *Server) { s.URL = "https://x.example/mcp?max_tokens=1" }, ""},
		{args("--token", "hunter2"), "args[1]"},
		{args("-v", "--token=hunter2"), "args[1]"},
		{args("--api-key", "hunter2", "x"), "args[1]"},
		{args("ghp_hunter2"), "args[0]"},
		{args("sk-hunter2"), "args[0]"},
		{args("-e", "API_KEY=hunter2"), "args[1]"},
		{args("--build-arg=TOKEN=hunter2"), "args[0]"},
		{args("--header", "Authorization: Bearer hunter2"), "args[1]"},
		{args("--header", "Authorization:hunter2"), "args[1]"},
		{args("--header=X-Key: hunter2"), "args[0]"},
		{args("X-API-Key:hunter2"), "args[0]"},
		{args("postgres://u:hunter2@db/x"), "args[0]"},
		{args("-----BEGIN PRIVATE KEY-----hunter2"), "args[0]"},
		{func(s *Server) { s.Transport, s.URL, s.Command = TransportStdio, "", "ghp_hunter2" }, "command"},
		{args("--header", "Authorization: Bearer ${TOKEN}", "--token", "${TOKEN}", "-e", "TOKEN", "Authorization:${T}"), ""},
		{args("--token", "--verbose", "--auth", "basic", "--auth=oauth", "--max-tokens", "4096", "--token-file", "/x", "--password-file=/x"), ""},
		{args("secret-server:latest", "ghcr.io/x/token:1", "sk-learn-mcp", "pypi-server", "npm_config", "@scope/auth", "say: the token", "a bearer of news", "C:\\secret"), ""},
		{func(s *Server) { s.HealthCheck = &HealthCheck{Kind: HealthHTTP, Path: "/health?token=hunter2"} }, "healthCheck.path"},
		{func(s *Server) { s.HealthCheck = &HealthCheck{Kind: HealthHTTP, Path: "/health?x=1"} }, ""},
		{func(s *Server) {
			s.HealthCheck = &HealthCheck{Kind: HealthCommand, Command: []string{"curl", "-H", "Authorization: Bearer hunter2"}}
		}, "healthCheck.command[2]"},
		{func(s *Server) { s.Headers = map[string]string{"X": "Bearer ${A} ghp_hunter2"} }, "headers.X"},
		{func(s *Server) { s.Headers = map[string]string{"X-Api-Key": "${input:hunter2}"} }, "headers.X-Api-Key"},
		{func(s *Server) { s.Headers = map[string]string{"X-Api-Key": "${A}${B}", "Y": "Bearer ${C}"} }, ""},
	} {
		s := Server{Name: "s", Transport: TransportHTTP, URL: "https://x.example"}
		tt.edit(&s)
		s.normalize()
		var got []string
		for _, f := range s.faults() {
			got = append(got, f.Location)
			if strings.Contains(f.Message, "hunter2") {
				t.Errorf("the fault repeats the secret: %s", f.Message)
			}
		}
		if want := slices.DeleteFunc([]string{tt.want}, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("%s %q %+v: faults at %q, want %q", s.URL, s.Args, s.Headers, got, want)
		}
	}
}

func args(args ...string) func(*Server) {
	return func(s *Server) { s.Transport, s.URL, s.Command, s.Args = TransportStdio, "", "x", args }
}

// CAT-5
func TestSecretName(t *testing.T) {
	long := strings.Repeat("k", 300)
	for _, tt := range [][3]string{
		{"files", "API_KEY", "FILES_API_KEY"},
		{"files", "api-key", "FILES_API_KEY"},
		{"my-files", "X-Api.Key", "MY_FILES_X_API_KEY"},
		{"9to5", "token", "_9TO5_TOKEN"},
		{"s", "日本", "S___"},
		{"s", "tökén", "S_T_K_N"},
	} {
		if got := secretName(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%s %s: %s, want %s", tt[0], tt[1], got, tt[2])
		}
	}
	if a, b := secretName("s", long), secretName("s", long+"x"); a == b || !ValidSecretName(numbered(a, 1000)) {
		t.Errorf("long: %s, %s", a, b)
	}
	for name, want := range map[string]bool{
		"A": true, "_": true, "a9_": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false,
		"": false, "9a": false, "a-b": false, "a b": false, "A=b": false, "ä": false, "${A}": false,
	} {
		if got := ValidSecretName(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}

func FuzzSplitSecret(f *testing.F) {
	f.Add("API_KEY", "abc")
	f.Add("Authorization", "Bearer abc")
	f.Add("X", "https://u:p@x/?a=%zz")
	f.Fuzz(func(t *testing.T, key, value string) {
		shown, hidden, ok := splitSecret(key, value)
		if !ok {
			return
		}
		if shown+hidden != value || hidden == "" {
			t.Errorf("%q became %q and %q", value, shown, hidden)
		}
		// What is stored in its place is left alone the next time.
		if _, _, again := splitSecret(key, shown+"${"+secretName("s", key)+"}"); again || !ValidSecretName(secretName("s", key)) {
			t.Errorf("%q is not stable", key)
		}
	})
}
