package gotrue_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestWireTableOfErrors goes through the endpoints' errors row by row.
func TestWireTableOfErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("a", 250) + "@example.com"
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code, message            string
	}{
		{name: "otp without an address", method: "POST", path: "/otp", body: `{"email":""}`, status: 422, code: "validation_failed"},
		{name: "otp with null", method: "POST", path: "/otp", body: `{"email":null}`, status: 422, code: "validation_failed"},
		{name: "otp with nothing", method: "POST", path: "/otp", body: `{}`, status: 422, code: "validation_failed"},
		{name: "otp malformed address", method: "POST", path: "/otp", body: `{"email":"ada"}`, status: 400, code: "validation_failed", message: "Unable to validate email address: invalid format"},
		{name: "otp with a header in the address", method: "POST", path: "/otp", body: `{"email":"a@x.io\r\nBcc: b@x.io"}`, status: 400, code: "validation_failed"},
		{name: "otp long address", method: "POST", path: "/otp", body: `{"email":"` + long + `"}`, status: 400, code: "validation_failed"},
		{name: "otp challenge without method", method: "POST", path: "/otp", body: `{"email":"a@x.io","code_challenge":"` + strings.Repeat("a", 43) + `"}`, status: 400, code: "validation_failed"},
		{name: "otp method without challenge", method: "POST", path: "/otp", body: `{"email":"a@x.io","code_challenge_method":"s256"}`, status: 400, code: "validation_failed"},
		{name: "otp short challenge", method: "POST", path: "/otp", body: `{"email":"a@x.io","code_challenge":"abc","code_challenge_method":"plain"}`, status: 400, code: "validation_failed"},
		{name: "otp by phone", method: "POST", path: "/otp", body: `{"phone":"+4912345"}`, status: 400, code: "phone_provider_disabled"},
		{name: "otp no JSON", method: "POST", path: "/otp", body: `email=a`, status: 400, code: "bad_json"},
		{name: "otp list", method: "POST", path: "/otp", body: `[]`, status: 400, code: "bad_json"},
		{name: "otp number", method: "POST", path: "/otp", body: `{"email":5}`, status: 400, code: "bad_json"},
		{name: "otp empty body", method: "POST", path: "/otp", status: 400, code: "bad_json"},
		{name: "otp two objects", method: "POST", path: "/otp", body: `{"email":"a@x.io"}{}`, status: 400, code: "bad_json"},
		{name: "otp form", method: "POST", path: "/otp", body: `email=a@x.io`, headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 415, code: "unsupported_media_type"},
		{name: "otp too large", method: "POST", path: "/otp", body: `{"email":"` + strings.Repeat("a", 70<<10) + `"}`, status: 413, code: "request_too_large"},
		{name: "otp by GET", method: "GET", path: "/otp", status: 405, code: "method_not_allowed"},
		{name: "otp from another site", method: "POST", path: "/otp", body: `{"email":"a@x.io"}`, headers: []string{"Sec-Fetch-Site", "cross-site"}, status: 403, code: "cross_origin"},
		{name: "otp from another origin", method: "POST", path: "/otp", body: `{"email":"a@x.io"}`, headers: []string{"Origin", "https://evil.example"}, status: 403, code: "cross_origin"},
		{name: "verify unknown token", method: "POST", path: "/verify", body: `{"type":"magiclink","token_hash":"` + strings.Repeat("a", 43) + `"}`, status: 403, code: "otp_expired", message: "Token has expired or is invalid"},
		{name: "verify malformed token", method: "POST", path: "/verify", body: `{"type":"magiclink","token_hash":"x"}`, status: 403, code: "otp_expired"},
		{name: "verify without a type", method: "POST", path: "/verify", body: `{"token_hash":"x"}`, status: 400, code: "validation_failed"},
		{name: "verify as recovery", method: "POST", path: "/verify", body: `{"type":"recovery","token_hash":"x"}`, status: 400, code: "validation_failed"},
		{name: "verify without a token", method: "POST", path: "/verify", body: `{"type":"magiclink"}`, status: 400, code: "validation_failed"},
		{name: "verify with an address", method: "POST", path: "/verify", body: `{"type":"magiclink","token_hash":"x","email":"a@x.io"}`, status: 400, code: "validation_failed"},
		{name: "verify text", method: "POST", path: "/verify", body: `x`, headers: []string{"Content-Type", "text/plain"}, status: 415, code: "unsupported_media_type"},
		{name: "verify by PUT", method: "PUT", path: "/verify", body: `{}`, status: 405, code: "method_not_allowed"},
		{name: "token pkce without parts", method: "POST", path: "/token?grant_type=pkce", body: `{"auth_code":"x"}`, status: 400, code: "validation_failed"},
		{name: "token pkce", method: "POST", path: "/token?grant_type=pkce", body: `{"auth_code":"x","code_verifier":"y"}`, status: 404, code: "flow_state_not_found"},
		{name: "token without a refresh token", method: "POST", path: "/token?grant_type=refresh_token", body: `{}`, status: 400, code: "validation_failed"},
		{name: "token unknown refresh token", method: "POST", path: "/token?grant_type=refresh_token", body: `{"refresh_token":"abc"}`, status: 400, code: "refresh_token_not_found"},
		{name: "token well-formed refresh token", method: "POST", path: "/token?grant_type=refresh_token", body: `{"refresh_token":"` + strings.Repeat("A", 70) + `"}`, status: 400, code: "refresh_token_not_found"},
		{name: "token by password", method: "POST", path: "/token?grant_type=password", body: `{"email":"a@x.io","password":"x"}`, status: 400, code: "invalid_credentials", message: "unsupported_grant_type"},
		{name: "token no grant", method: "POST", path: "/token", body: `{}`, status: 400, code: "invalid_credentials"},
		{name: "user anonymous", method: "GET", path: "/user", status: 401, code: "no_authorization"},
		{name: "user empty header", method: "GET", path: "/user", headers: []string{"Authorization", "Bearer "}, status: 401, code: "no_authorization"},
		{name: "user bad token", method: "GET", path: "/user", headers: []string{"Authorization", "Bearer x.y.z"}, status: 401, code: "bad_jwt"},
		{name: "logout anonymous", method: "POST", path: "/logout", status: 401, code: "no_authorization"},
		{name: "unknown path", method: "GET", path: "/signup", status: 404, code: "not_found"},
		{name: "unknown path by POST", method: "POST", path: "/admin/users", body: `{}`, status: 404, code: "not_found"},
		{name: "trailing slash", method: "GET", path: "/health/", status: 404, code: "not_found"},
		{name: "root", method: "GET", path: "/", status: 404, code: "not_found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.send(w.client(), c.method, c.path, c.body, c.headers...)
			wantProblem(t, a, c.status, c.code, c.message)
			if c.status == http.StatusMethodNotAllowed && a.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
	if n := w.count(`select count(*) from auth_request`); n != 0 {
		t.Errorf("%d refused requests were counted", n)
	}
}

func TestVersionIsEchoedOnlyToTheNewerProtocol(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for version, want := range map[string]string{
		"2024-01-01": "2024-01-01", "2025-06-30": "2025-06-30", "2023-12-31": "", "": "", "9999": "", "2024-01-01; x": "",
	} {
		for _, path := range []string{"/health", "/nowhere"} {
			a := w.send(w.client(), "GET", path, "", "X-Supabase-Api-Version", version)
			if got := a.header.Get("X-Supabase-Api-Version"); got != want {
				t.Errorf("%s with version %q echoes %q, want %q", path, version, got, want)
			}
		}
	}
}

func TestPublicEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.send(w.client(), "GET", "/.well-known/jwks.json", "")
	keys, ok := a.json(t)["keys"].([]any)
	if a.status != 200 || !ok || len(keys) != 1 || a.header.Get("Cache-Control") != "public, max-age=600" {
		t.Fatalf("jwks = %d %v %s", a.status, a.header, a.body)
	}
	key, _ := keys[0].(map[string]any)
	if key["kty"] != "EC" || key["crv"] != "P-256" || key["alg"] != "ES256" || key["use"] != "sig" || key["d"] != nil {
		t.Errorf("key = %v", key)
	}
	for _, member := range []string{"kid", "x", "y"} {
		if v, _ := key[member].(string); len(v) != 43 {
			t.Errorf("%s = %v", member, key[member])
		}
	}
	settings := w.send(w.client(), "GET", "/settings", "").json(t)
	external, _ := settings["external"].(map[string]any)
	if external["email"] != true || settings["disable_signup"] != false || settings["mailer_autoconfirm"] != false {
		t.Errorf("settings = %v", settings)
	}
	health := w.send(w.client(), "GET", "/health", "")
	if b := health.json(t); b["name"] == "" || b["version"] != "test" || b["description"] == "" || health.header.Get("Cache-Control") != "no-store" {
		t.Errorf("health = %v", b)
	}
	if head := w.send(w.client(), "HEAD", "/health", ""); head.status != 200 || head.body != "" {
		t.Errorf("HEAD /health = %d %q", head.status, head.body)
	}
}
