package seal_test

import (
	"bytes"
	"errors"
	"testing"

	"homeport.dev/homeport/internal/seal"
)

// What the first key sealed has no mark, as ever: nodes of the release before
// open it. What later keys seal names them, and each opens with its own alone.
func TestValuesNameTheirKeyButForTheFirst(t *testing.T) {
	t.Parallel()
	first, second := bytes.Repeat([]byte{1}, seal.KeySize), bytes.Repeat([]byte{2}, seal.KeySize)
	alone, err := seal.New(first)
	if err != nil {
		t.Fatal(err)
	}
	old := alone.Seal([]byte("secret"), "test")
	if len(old) != 12+len("secret")+16 {
		t.Errorf("a value of the first key has %d bytes", len(old))
	}

	both, err := seal.New(first)
	if err != nil {
		t.Fatal(err)
	}
	mark := seal.MarkOf(second)
	if err := both.SealUnder(mark); err == nil {
		t.Error("a box seals under a key that it has not")
	}
	if err := errors.Join(both.Add(mark, second), both.SealUnder(mark)); err != nil {
		t.Fatal(err)
	}
	young := both.Seal([]byte("secret"), "test")
	if !bytes.Contains(young, mark[:]) {
		t.Error("a value does not name its key")
	}
	for _, sealed := range [][]byte{old, young} {
		if plain, err := both.Open(sealed, "test"); err != nil || string(plain) != "secret" {
			t.Errorf("opened %q, %v", plain, err)
		}
		if _, err := both.Open(sealed, "another"); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("for another purpose: %v", err)
		}
	}
	if _, err := alone.Open(young, "test"); !errors.Is(err, seal.ErrOpen) || !bytes.Contains([]byte(err.Error()), []byte(mark.String())) {
		t.Errorf("without its key: %v", err)
	}
	for n := range len(young) {
		if _, err := both.Open(young[:n], "test"); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("%d bytes of a value: %v", n, err)
		}
	}
}
