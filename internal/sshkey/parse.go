package sshkey

import (
	"crypto/rsa"
	"encoding/base64"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"
)

const (
	maxText    = 16 << 10 // bytes of what may be pasted
	maxName    = 80       // characters of a name
	minRSABits = 2048
	maxRSABits = 16384
)

// A Key is one public key in canonical form.
type Key struct {
	Type        string // "ssh-ed25519"
	Line        string // type and key, without options, comment and line end
	Fingerprint string // "SHA256:…"
}

// allowed are the key types that may log in. Certificates, DSA and whatever
// else the parser knows are not among them.
var allowed = map[string]bool{
	ssh.KeyAlgoED25519:    true,
	ssh.KeyAlgoSKED25519:  true,
	ssh.KeyAlgoECDSA256:   true,
	ssh.KeyAlgoECDSA384:   true,
	ssh.KeyAlgoECDSA521:   true,
	ssh.KeyAlgoSKECDSA256: true,
	ssh.KeyAlgoRSA:        true,
}

// Parse reads one public key in the form of an authorized_keys line, as a .pub
// file has it: type, key and maybe a comment, which is dropped. White space
// around it is trimmed. The faults are ErrPrivate and ErrInvalid.
func Parse(text string) (Key, error) {
	if looksPrivate(text) {
		return Key{}, ErrPrivate
	}
	if len(text) > maxText {
		return Key{}, ErrInvalid.With("The public key is too long.")
	}
	line := strings.TrimFunc(text, isBlank)
	if line == "" {
		return Key{}, ErrInvalid.With("The public key is required.")
	}
	if strings.ContainsAny(line, "\n\r") {
		return Key{}, ErrInvalid.With("Paste one public key only, on one line.")
	}
	if !utf8.ValidString(line) || strings.ContainsFunc(line, isControl) {
		return Key{}, ErrInvalid.With("The public key contains characters that do not belong there.")
	}
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	keyType := words[0]
	if !allowed[keyType] {
		return Key{}, refuseType(keyType)
	}
	if len(words) < 2 {
		return Key{}, ErrInvalid.With("The public key is incomplete or damaged.")
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(words[1])
	if err != nil {
		return Key{}, ErrInvalid.With("The public key is incomplete or damaged.")
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil || key.Type() != keyType {
		return Key{}, ErrInvalid.With("The public key is incomplete or damaged.")
	}
	if err := checkStrength(key); err != nil {
		return Key{}, err
	}
	return Key{
		Type:        keyType,
		Line:        strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))),
		Fingerprint: ssh.FingerprintSHA256(key),
	}, nil
}

// refuseType says why a line that begins with this word is not accepted.
func refuseType(word string) error {
	switch {
	case strings.HasPrefix(word, "ssh-dss"):
		return ErrInvalid.With("DSA keys are not accepted: they are too weak. Make an ed25519 key.")
	case strings.Contains(word, "-cert-v01@"):
		return ErrInvalid.With("Certificates are not accepted: paste the plain public key.")
	}
	return ErrInvalid.With("A public key begins with its type, such as ssh-ed25519 or ssh-rsa, without options before it.")
}

func checkStrength(key ssh.PublicKey) error {
	if key.Type() != ssh.KeyAlgoRSA {
		return nil
	}
	crypto, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return ErrInvalid
	}
	pub, ok := crypto.CryptoPublicKey().(*rsa.PublicKey)
	if !ok {
		return ErrInvalid
	}
	switch bits := pub.N.BitLen(); {
	case bits < minRSABits:
		return ErrInvalid.With("This RSA key has %d bits; at least %d are needed.", bits, minRSABits)
	case bits > maxRSABits:
		return ErrInvalid.With("This RSA key has %d bits; at most %d are accepted.", bits, maxRSABits)
	}
	return nil
}

// looksPrivate recognises the private key files of OpenSSH, PEM and PuTTY,
// also when only a part of one was pasted.
func looksPrivate(text string) bool {
	upper := strings.ToUpper(text)
	return strings.Contains(upper, "PRIVATE KEY") ||
		strings.Contains(upper, "PUTTY-USER-KEY-FILE") || strings.Contains(upper, "PRIVATE-LINES:") ||
		strings.Contains(text, "b3BlbnNzaC1rZXktdjEA") // base64 of "openssh-key-v1\0"
}

// isBlank is what may stand around a pasted key: white space and a byte order mark.
func isBlank(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }

func isControl(r rune) bool { return unicode.IsControl(r) && r != '\t' }

// cleanName makes the name that is stored: trimmed, on one line, "Untitled"
// when empty. The fault is ErrName.
func cleanName(name string) (string, error) {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, name)
	name = strings.TrimSpace(name)
	if name == "" {
		return "Untitled", nil
	}
	if utf8.RuneCountInString(name) > maxName {
		return "", ErrName
	}
	return name, nil
}
