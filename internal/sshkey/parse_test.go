package sshkey_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/sshkey"
)

// Keys made for these tests; nobody holds their private halves.
const (
	ed25519Key  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG/Kc3/1tpfaWZ+oLKv8G4XEbsMUQMECdPnBaOQTIPZz"
	rsa1024Key  = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQD0RTXatOb8Qf75sTobSC4064On4M+LHPtdkjIjPigG7VlrCTHvn9NxkASLZHuzCs02475lfN3FGL0HD21v6+Cxp+wBp/U7QzKK5lIuD4v4LWf/CJhYqCQU0OlfYsfG6/AZ+gp2IJPokSn8sOc4a5V0CXa+AKtcCWfGWgKcMcpA6Q=="
	rsa2048Key  = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCy2hKmpG8zce4pGTLRZ65h+ivD/Jz7pvRwCb7MNw6v1fOKSutIQHb6XUj4A2Pnon38IF8W+epknj7RICFCN+NmaKR/h7mbzikkN25CcMoAtU5xYi0nA+RZ/VIVCWFD1ELwcqEAB0c76PUwFBDVC/357a/2BDTRyRcueNXJ32drhxLDEcgXKcXQG8po1KTBLy5z0K1pMCZbNDsIhze8UBHY7SlMNwocxUa9h220NtsmBu+xCsAVGmlxxgeiFNC9j82GM60h6wkehldUTGVorS+SnS2QYozZ2mo/GlxbCYXSt6+WIeALEJ+FW9mnHSB8PKuERkc2/EkJ7TxSgQXJhCJl"
	ecdsa256Key = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBOnm+cz47O/+U4HP2E0InZIeLwlrM90HPfWw/rW73sCoo7FyDtuimrTRuFkGaTKV5F+mrAhHnOjMWiQap9QpJUQ="
	ecdsa384Key = "ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBAO2pitVrcEtzLC34BKRgb3dMxm4RK7iAOESerQsK05GYC4C5DsjbzGuA5dF6BPLdUEW7W5wzPk2d1A8l8Of69pStNd8m5Wm2A7mYgkJ/534o0o7MIsjrVfyNGvHgaNs6A=="
	ecdsa521Key = "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAG/NaGWy3PFSOzNucAWe0B0/XYRNiwYX+AlyydI7UGyoriOd4Jbz4lIhrT6FjeLaSm9Ny1CT06Z3BpDGZDf9iTsCAFB5n3wkBfpbHMaT+uP4t9qbyG17yH5ZJ61GL48651PahhrlPI5b+1RncsW5PnnGMkJ4kSEj5m32Gy6r8qmcS/IyQ=="
	dsaKey      = "ssh-dss AAAAB3NzaC1kc3MAAACBAIqPbD+vRjxdX1gdOfOu9RH7MFgyrKTOqLjhppD7jeOvqWfa7zWSuvCjKaxPL6fPqgJfmYnS7MHrOseXtJvrygaJYwmUqoU/KcvgJREyOoRcVaWQC+105Z4nSpXD4w7HrcdCQ2IWD8Cd5Ru3G/bxRVwggqA/wFT/gGCoScsU7APhAAAAFQCJHkOKmD/S4b+Pxwlo8SlyW/XDuwAAAIBJ46ogsJ73Xt6EiZH4VdbNx1Rn57TGK9xfeyfnJrGKBykYmkYA4xWb18H/QGey6LYaxuo0XdAQrqNClLMhO+f0Ugf1JpWmF5iq6SrRzUckR8I4CkN8nDLH5Xr4u6ENMFkC2Y3FELW7+K9jYwp11qOD8H3RWGVWfEazCqJswwqKMwAAAIBrTsXOaLgZvbVUnsUXpmGVPW447jocm4Q6u0Nm4jYTpsrRTj66guL6k373L0xPL9iL728673/ejKS5SVx9bTbC4EPpyfMklQCNGxKTWVJcGvza+tellq0OamtPM+2hPZtLZSoZnW/be17Af8wHgdx62KSV6ItivD6XtNyeVx3+ag=="
)

// skLine builds a key of a security token.
func skLine(t *testing.T, keyType string, fields any) string {
	t.Helper()
	blob := append(ssh.Marshal(struct{ Type string }{keyType}), ssh.Marshal(fields)...)
	return keyType + " " + base64.StdEncoding.EncodeToString(blob)
}

func skEd25519(t *testing.T) string {
	t.Helper()
	return skLine(t, ssh.KeyAlgoSKED25519, struct{ Key, App string }{strings.Repeat("k", 32), "ssh:"})
}

func skECDSA(t *testing.T) string {
	t.Helper()
	blob, err := base64.StdEncoding.DecodeString(strings.Fields(ecdsa256Key)[1])
	if err != nil {
		t.Fatal(err)
	}
	var plain struct{ Type, Curve, Point string }
	if err := ssh.Unmarshal(blob, &plain); err != nil {
		t.Fatal(err)
	}
	return skLine(t, ssh.KeyAlgoSKECDSA256, struct{ Curve, Point, App string }{plain.Curve, plain.Point, "ssh:"})
}

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, line string }{
		"ed25519":              {ed25519Key, ed25519Key},
		"with a comment":       {ed25519Key + " ada@laptop", ed25519Key},
		"a long comment":       {ed25519Key + " a b\tc d", ed25519Key},
		"white space around":   {"\n\t  " + ed25519Key + "  \r\n\r\n", ed25519Key},
		"a byte order mark":    {"\ufeff" + ed25519Key, ed25519Key},
		"several spaces":       {strings.Replace(ed25519Key, " ", " \t  ", 1), ed25519Key},
		"rsa 2048":             {rsa2048Key, rsa2048Key},
		"ecdsa 256":            {ecdsa256Key, ecdsa256Key},
		"ecdsa 384":            {ecdsa384Key, ecdsa384Key},
		"ecdsa 521":            {ecdsa521Key, ecdsa521Key},
		"sk-ed25519":           {skEd25519(t) + " token", skEd25519(t)},
		"sk-ecdsa":             {skECDSA(t), skECDSA(t)},
		"a comment like a key": {ed25519Key + " " + ecdsa256Key, ed25519Key},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := sshkey.Parse(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if key.Line != tt.line || key.Type != strings.Fields(tt.line)[0] || !strings.HasPrefix(key.Fingerprint, "SHA256:") {
				t.Errorf("got %+v", key)
			}
			mustBeOneKey(t, key)
		})
	}
}

// mustBeOneKey reads the stored line as an SSH server would.
func mustBeOneKey(t *testing.T, key sshkey.Key) {
	t.Helper()
	file := []byte(key.Line + "\n")
	pub, comment, options, rest, err := ssh.ParseAuthorizedKey(file)
	if err != nil {
		t.Fatalf("the stored line %q does not parse: %v", key.Line, err)
	}
	if len(options) != 0 || len(bytes.TrimSpace(rest)) != 0 || comment != "" {
		t.Fatalf("the stored line %q has options %q, comment %q, rest %q", key.Line, options, comment, rest)
	}
	if pub.Type() != key.Type || ssh.FingerprintSHA256(pub) != key.Fingerprint {
		t.Fatalf("the stored line %q is another key", key.Line)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	cert := strings.Replace(ed25519Key, "ssh-ed25519 ", "ssh-ed25519-cert-v01@openssh.com ", 1)
	opensshBody := base64.StdEncoding.EncodeToString([]byte("openssh-key-v1\x00 and so on"))
	for name, tt := range map[string]struct {
		text string
		want error
		says string
	}{
		"empty":                     {"", sshkey.ErrInvalid, "required"},
		"white space":               {" \n\t ", sshkey.ErrInvalid, "required"},
		"rsa 1024":                  {rsa1024Key, sshkey.ErrInvalid, "1024 bits"},
		"dsa":                       {dsaKey, sshkey.ErrInvalid, "DSA"},
		"a command option":          {`command="rm -rf /" ` + ed25519Key, sshkey.ErrInvalid, "without options"},
		"an environment option":     {`environment="LD_PRELOAD=/x.so" ` + ed25519Key, sshkey.ErrInvalid, "without options"},
		"a bare option":             {"no-pty " + ed25519Key, sshkey.ErrInvalid, "without options"},
		"two options":               {`no-pty,permitopen="x:1" ` + ed25519Key, sshkey.ErrInvalid, "without options"},
		"a garbage line before":     {"garbage\n" + ed25519Key, sshkey.ErrInvalid, "one line"},
		"a comment line before":     {"# mine\n" + ed25519Key, sshkey.ErrInvalid, "one line"},
		"a second key":              {ed25519Key + "\n" + ecdsa256Key, sshkey.ErrInvalid, "one line"},
		"garbage after":             {ed25519Key + "\ngarbage", sshkey.ErrInvalid, "one line"},
		"CR within the comment":     {ed25519Key + " a\rb", sshkey.ErrInvalid, "one line"},
		"NUL within the comment":    {ed25519Key + " a\x00b", sshkey.ErrInvalid, "characters"},
		"escape in the comment":     {ed25519Key + " a\x1b[2J", sshkey.ErrInvalid, "characters"},
		"not UTF-8":                 {ed25519Key + " a\xff", sshkey.ErrInvalid, "characters"},
		"a certificate":             {cert, sshkey.ErrInvalid, "Certificates"},
		"type and blob differ":      {strings.Replace(ed25519Key, "ssh-ed25519", "ssh-rsa", 1), sshkey.ErrInvalid, "damaged"},
		"cut off":                   {ed25519Key[:len(ed25519Key)-9], sshkey.ErrInvalid, "damaged"},
		"the type alone":            {"ssh-ed25519", sshkey.ErrInvalid, "damaged"},
		"not base64":                {"ssh-ed25519 !!!!", sshkey.ErrInvalid, "damaged"},
		"the blob alone":            {strings.Fields(ed25519Key)[1], sshkey.ErrInvalid, "begins with its type"},
		"a fingerprint":             {"SHA256:abcdef", sshkey.ErrInvalid, "begins with its type"},
		"far too long":              {"ssh-rsa " + strings.Repeat("A", 20<<10), sshkey.ErrInvalid, "too long"},
		"openssh private key":       {"-----BEGIN OPENSSH PRIVATE KEY-----\nabc", sshkey.ErrPrivate, ".pub"},
		"pem private key":           {"-----BEGIN RSA PRIVATE KEY-----\nabc", sshkey.ErrPrivate, ".pub"},
		"pem after a public key":    {ed25519Key + "\n-----begin ec private key-----", sshkey.ErrPrivate, ".pub"},
		"putty private key":         {"PuTTY-User-Key-File-3: ssh-ed25519", sshkey.ErrPrivate, ".pub"},
		"the body of a private key": {opensshBody, sshkey.ErrPrivate, ".pub"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := sshkey.Parse(tt.text)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %+v and %v, want %v", key, err, tt.want)
			}
			if detail := fault.Of(err).Detail; !strings.Contains(detail, tt.says) {
				t.Errorf("the sentence %q does not say %q", detail, tt.says)
			}
			if len(tt.text) > 20 && strings.Contains(err.Error()+fault.Of(err).Detail, tt.text[:20]) {
				t.Error("the refusal repeats what was pasted")
			}
		})
	}
}

// Whatever is accepted is one plain key to an SSH server.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		ed25519Key, rsa1024Key, rsa2048Key, ecdsa256Key, ecdsa384Key, ecdsa521Key, dsaKey,
		`command="x" ` + ed25519Key, ed25519Key + " c\r\n" + ecdsa256Key, "ssh-ed25519 \x00", "\ufeff " + ed25519Key,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := sshkey.Parse(text)
		if err != nil {
			if fault.Of(err) == nil {
				t.Fatalf("the refusal is no fault: %v", err)
			}
			return
		}
		mustBeOneKey(t, key)
		again, err := sshkey.Parse(key.Line)
		if err != nil || again != key {
			t.Fatalf("the stored line %q reads back as %+v, %v", key.Line, again, err)
		}
	})
}
