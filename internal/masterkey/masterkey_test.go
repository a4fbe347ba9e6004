package masterkey

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/auth"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/payment/testpay"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/seal"
)

// A house is a database whose nodes have key files.
type house struct {
	t    *testing.T
	pool *pgxpool.Pool
	deps Deps
}

func newHouse(t *testing.T) *house {
	t.Helper()
	pool := pgtest.New(t)
	return &house{t: t, pool: pool, deps: Deps{
		Pool: pool, Clock: clock.New(), Logger: slog.New(slog.DiscardHandler), Path: filepath.Join(t.TempDir(), "master.key"),
		Columns: slices.Concat(auth.Sealed(), testpay.Sealed()), Wait: 500 * time.Millisecond,
	}}
}

// open makes another process, which has the same key file.
func (h *house) open() *Ring {
	h.t.Helper()
	r, err := Open(h.t.Context(), h.deps)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// refused holds that no process starts with the keys as they are, and returns
// the reason.
func (h *house) refused() string {
	h.t.Helper()
	before, _ := os.ReadFile(h.deps.Path)
	_, err := Open(h.t.Context(), h.deps)
	if err == nil {
		h.t.Fatal("a node starts with these keys")
	}
	if after, _ := os.ReadFile(h.deps.Path); !bytes.Equal(before, after) {
		h.t.Error("the refused node changed the key file")
	}
	return err.Error()
}

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) file(text string) { h.must(os.WriteFile(h.deps.Path, []byte(text), 0o600)) }

func (h *house) text() string {
	text, err := os.ReadFile(h.deps.Path)
	h.must(err)
	return string(text)
}

// put keeps a secret as a node does.
func put(ctx context.Context, r *Ring, name string) error {
	_, err := r.Pool.Exec(ctx, `insert into auth_signing_key (kid, sealed_private, public_der, created_at, activates_at)
		values ($1, $2, '', '2027-01-01', '2027-01-01')`, name, r.Box().Seal([]byte("of "+name), auth.Sealed()[0].Purpose(name)))
	return err
}

// opens holds that a process opens a secret.
func (h *house) opens(r *Ring, name string) {
	h.t.Helper()
	var sealed []byte
	h.must(h.pool.QueryRow(h.t.Context(), `select sealed_private from auth_signing_key where kid = $1`, name).Scan(&sealed))
	if plain, err := r.Box().Open(sealed, auth.Sealed()[0].Purpose(name)); err != nil || string(plain) != "of "+name {
		h.t.Errorf("%s is %q, %v", name, plain, err)
	}
}

func (h *house) until(what string, done func() bool) {
	h.t.Helper()
	for end := time.Now().Add(15 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("it never happens that %s", what)
		}
	}
}

// states is a line for each key: its state and how many values it seals.
func (h *house) states(r *Ring) string {
	h.t.Helper()
	infos, err := r.List(h.t.Context())
	h.must(err)
	var words []string
	for _, k := range infos {
		words = append(words, fmt.Sprintf("%s %d", k.State, k.Values))
	}
	return strings.Join(words, ", ")
}

// Nodes that start at once on one folder draw one key, and none reads half of
// it: what a key sealed is lost with it.
func TestFirstKeyIsDrawnOnceAndWhole(t *testing.T) {
	t.Parallel()
	for range 50 {
		r := &Ring{Deps: Deps{Path: filepath.Join(t.TempDir(), "master.key")}}
		// Left by a process that was killed while it drew.
		if err := os.WriteFile(filepath.Join(filepath.Dir(r.Path), "master.key.new-1"), []byte("0123"), 0o600); err != nil {
			t.Fatal(err)
		}
		var found [8][]key
		var wg sync.WaitGroup
		for i := range found {
			wg.Go(func() {
				err := drawFirst(r.Path)
				if err == nil {
					found[i], err = r.read()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, keys := range found {
			if len(keys) != 1 || keys[0].id != found[0][0].id {
				t.Fatalf("one node has %d keys, of which the first is not the other's", len(keys))
			}
		}
		if info, err := os.Stat(r.Path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key's file: %v, %v", info, err)
		}
	}
}

// A key that is cut off seals nothing, and nothing is drawn in its place.
func TestKeyOfAnotherLengthIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	good := strings.Repeat("1a", 32)
	for text, want := range map[string]string{
		"": "has 0 bytes", "\n": "has 0 bytes", "0123abcd\n": "has 4 bytes", "no": "not hex", good + "\nab\n": "has 1 bytes",
	} {
		h.file(text)
		if why := h.refused(); !strings.Contains(why, h.deps.Path) || !strings.Contains(why, want) || strings.Contains(why, good) {
			t.Errorf("%q: %v", text, why)
		}
	}
	h.deps.Setting = "0123abcd"
	if why := h.refused(); !strings.Contains(why, "HOMEPORT_MASTER_KEY has 4 bytes") {
		t.Errorf("a configured key that is too short: %v", why)
	}
}

// A node with no key, or with another one, does not start beside what is sealed.
// It says which key it wants, and draws none.
func TestMissingOrOtherKeyIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := h.open()
	h.must(put(t.Context(), r, "a"))
	infos, err := r.List(t.Context())
	h.must(err)
	kept := h.text()
	h.must(os.Remove(h.deps.Path))
	if why := h.refused(); !strings.Contains(why, "is missing") || !strings.Contains(why, infos[0].ID) {
		t.Errorf("without a file: %s", why)
	}
	if _, err := os.Stat(h.deps.Path); err == nil {
		t.Error("a key was drawn")
	}
	h.file(strings.Repeat("ab", 32))
	if why := h.refused(); !strings.Contains(why, infos[0].ID) {
		t.Errorf("with another key: %s", why)
	}
	h.file(kept)
	h.opens(h.open(), "a")
}

// A database of the release before does not know its key's name: it is the one
// that opens what is there.
func TestKeyOfAnOlderDatabaseIsRecognised(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	secret := strings.Repeat("5c", 32)
	raw, err := hex.DecodeString(secret)
	h.must(err)
	box, err := seal.New(raw)
	h.must(err)
	h.must(put(t.Context(), &Ring{Deps: h.deps, box: box}, "a"))
	if why := h.refused(); !strings.Contains(why, "is missing") {
		t.Errorf("without a file: %s", why)
	}
	h.file(strings.Repeat("ab", 32))
	if why := h.refused(); !strings.Contains(why, "no key in") {
		t.Errorf("with another key: %s", why)
	}
	h.file(strings.Repeat("ab", 32) + "\n" + secret)
	r := h.open()
	h.opens(r, "a")
	if got := h.states(r); got != "current 1" {
		t.Errorf("the keys are %s", got)
	}
}

// TestEverythingIsSealedUnderANewKey is the whole way, beside a node that serves:
// it follows without a start, the old key is not retired while it is used, and
// its backups' key is kept.
func TestEverythingIsSealedUnderANewKey(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	node := h.open()
	h.must(node.Follow(t.Context()))
	const values = 2*batchSize + 7
	for i := range values {
		h.must(put(t.Context(), node, fmt.Sprint("k", i)))
	}
	before := node.Derived("test")[0]
	first, err := node.List(t.Context())
	h.must(err)
	operator := h.open()
	if _, err := operator.Retire(t.Context(), first[0].ID); err == nil || !strings.Contains(err.Error(), "current") {
		t.Errorf("the current key is retired: %v", err)
	}

	follow := h.follow(node)
	done, err := operator.Rotate(t.Context())
	h.must(err)
	follow()
	if done.Resealed != values || !done.Fresh || done.Key == first[0].ID || !slices.Equal(done.Old, []string{first[0].ID}) {
		t.Errorf("the rotation did %+v", done)
	}
	if got, want := h.states(operator), fmt.Sprintf("old 0, current %d", values); got != want {
		t.Errorf("the keys are %s, want %s", got, want)
	}
	for i := range values {
		h.opens(node, fmt.Sprint("k", i))
	}
	h.must(put(t.Context(), node, "after"))
	if derived := node.Derived("test"); len(derived) != 2 || bytes.Equal(derived[0], before) || !bytes.Equal(derived[1], before) {
		t.Error("what is derived does not follow, or what was derived before is not known any more")
	}
	again, err := operator.Rotate(t.Context())
	h.must(err)
	if again.Fresh || again.Resealed != 0 || again.Key != done.Key {
		t.Errorf("a rotation that was over did %+v", again)
	}

	retired, err := operator.Retire(t.Context(), first[0].ID)
	h.must(err)
	for _, path := range []string{h.deps.Path, retired.Kept} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if lines := strings.Fields(h.text()); len(lines) != 1 {
		t.Errorf("%d keys are in the file", len(lines))
	}
	last := h.open()
	h.opens(last, "after")
	h.opens(last, "k3")
	if got, want := h.states(last), fmt.Sprintf("retired 0, current %d", values+1); got != want {
		t.Errorf("the keys are %s, want %s", got, want)
	}
	if done, err = last.Rotate(t.Context()); err == nil || done.Fresh {
		t.Error("the node that stopped following was not waited for")
	}
}

// follow has a node look at the keys until the returned function is called.
func (h *house) follow(r *Ring) (stop func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := r.Follow(ctx); err != nil && ctx.Err() == nil {
				h.t.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// TestNothingIsLostWhileTwoNodesSeal rotates three times under two nodes that
// keep secrets all the while: every one opens on both and on a fresh one.
func TestNothingIsLostWhileTwoNodesSeal(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.deps.Wait = 30 * time.Second
	nodes := []*Ring{h.open(), h.open()}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	counts := make([]int, len(nodes))
	var stops []func()
	for i, node := range nodes {
		stops = append(stops, h.follow(node))
		wg.Go(func() {
			for ; ctx.Err() == nil; counts[i]++ {
				if err := put(t.Context(), node, fmt.Sprintf("n%d-%d", i, counts[i])); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		operator := h.open()
		done, err := operator.Rotate(t.Context())
		h.must(err)
		_, err = operator.Retire(t.Context(), done.Old[0])
		h.must(err)
	}
	cancel()
	wg.Wait()
	for _, stop := range stops {
		stop()
	}
	fresh := h.open()
	for i, n := range counts {
		for j := range n {
			for _, r := range append(nodes, fresh) {
				h.opens(r, fmt.Sprintf("n%d-%d", i, j))
			}
		}
	}
	if got, want := h.states(fresh), fmt.Sprintf("retired 0, retired 0, retired 0, current %d", counts[0]+counts[1]); got != want {
		t.Errorf("the keys are %s, want %s", got, want)
	}
}

// A node with a key file of its own gets the new key from the operator. Until it
// has it nothing is sealed that it could not open.
func TestNoKeySealsBeforeEveryNodeHoldsIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	operator := h.open()
	h.must(put(t.Context(), operator, "a"))
	far := *h
	far.deps.Path = filepath.Join(t.TempDir(), "master.key")
	far.file(h.text())
	node := far.open()
	h.must(node.Follow(t.Context()))

	_, err := operator.Rotate(t.Context())
	if err == nil || !strings.Contains(err.Error(), "seals nothing") {
		t.Fatalf("a node without the key was passed over: %v", err)
	}
	for _, secret := range strings.Fields(h.text()) {
		if strings.Contains(err.Error(), secret) {
			t.Error("the refusal shows a key")
		}
	}
	if got := h.states(operator); got != "current 1, next 0" {
		t.Errorf("the keys are %s", got)
	}
	h.opens(node, "a")
	drawn := h.text()
	far.file(drawn)
	stop := far.follow(node)
	done, err := operator.Rotate(t.Context())
	h.must(err)
	stop()
	if h.text() != drawn || done.Resealed != 1 {
		t.Errorf("the second try did %+v, or drew another key", done)
	}
	h.opens(node, "a")

	// It loses its file's new line: it goes on, is not ready, and starts no more.
	far.file(strings.Fields(drawn)[0])
	if err := node.Follow(t.Context()); err == nil || node.Err() == nil {
		t.Error("a node without the current key is ready")
	}
	h.opens(node, "a")
	if why := far.refused(); !strings.Contains(why, done.Key) {
		t.Errorf("it starts no more: %s", why)
	}
	far.file(drawn)
	h.must(node.Follow(t.Context()))
	h.must(node.Err())
}

// TestRetiredKeySealsNothing: a node that slept through all of it cannot leave
// behind what nobody will open.
func TestRetiredKeySealsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	sleeper, operator := h.open(), h.open()
	h.must(put(t.Context(), sleeper, "a"))
	done, err := operator.Rotate(t.Context())
	h.must(err)
	h.must(put(t.Context(), sleeper, "late")) // under the old key: it is still readable
	if _, err := operator.Retire(t.Context(), done.Old[0]); err == nil || !strings.Contains(err.Error(), "1 values") {
		t.Errorf("a key in use was retired: %v", err)
	}
	if got := h.states(operator); got != "old 1, current 1" {
		t.Errorf("the keys are %s", got)
	}
	again, err := operator.Rotate(t.Context())
	h.must(err)
	if again.Fresh || again.Resealed != 1 {
		t.Errorf("the rotation did %+v", again)
	}
	_, err = operator.Retire(t.Context(), done.Old[0])
	h.must(err)
	if err := put(t.Context(), sleeper, "too late"); err == nil || !strings.Contains(err.Error(), "foreign key") {
		t.Errorf("a secret was sealed under a retired key: %v", err)
	}
	h.must(sleeper.Follow(t.Context()))
	h.must(put(t.Context(), sleeper, "awake"))
	h.opens(h.open(), "awake")
}

// An old key that something is sealed under is wanted at the start; a value that
// no key opens is named, stays as it is and keeps its key from being retired.
func TestValuesThatDoNotOpenAreNamed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	operator := h.open()
	h.must(put(t.Context(), operator, "a"))
	h.must(put(t.Context(), operator, "b"))
	_, err := h.pool.Exec(t.Context(), `update auth_signing_key set sealed_private = '\x0102' where kid = 'b'`)
	h.must(err)
	done, err := operator.Rotate(t.Context())
	if err == nil || !strings.Contains(err.Error(), "signing keys of b") || done.Resealed != 1 {
		t.Errorf("the rotation did %+v, %v", done, err)
	}
	h.opens(operator, "a")
	if _, err := operator.Retire(t.Context(), done.Old[0]); err == nil {
		t.Error("the key of a value was retired")
	}
	lines := strings.Fields(h.text())
	h.file(lines[1])
	if why := h.refused(); !strings.Contains(why, "1 values") || !strings.Contains(why, done.Old[0]) {
		t.Errorf("without the old key: %s", why)
	}
}

// Keys that are configured are rotated by their setting.
func TestConfiguredKeysAreRotated(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one, two := strings.Repeat("1a", 32), strings.Repeat("2b", 32)
	h.deps.Setting = one
	r := h.open()
	h.must(put(t.Context(), r, "a"))
	if _, err := r.Rotate(t.Context()); err == nil || !strings.Contains(err.Error(), "holds no new key") {
		t.Errorf("a key was drawn beside the setting: %v", err)
	}
	h.deps.Setting = one + "," + two
	node := h.open()
	h.must(node.Follow(t.Context()))
	r = h.open()
	h.opens(r, "a")
	ended := make(chan error, 1)
	go func() { // it waits for the node to seal under the new key, too
		_, err := r.Rotate(t.Context())
		ended <- err
	}()
	h.until("the value is sealed anew", func() bool { return h.states(node) == "old 0, current 1" })
	h.opens(node, "a") // it has not looked again since
	h.must(node.Follow(t.Context()))
	h.must(<-ended)
	h.must(node.Leave(t.Context()))
	done, err := r.Rotate(t.Context())
	h.must(err)
	done.Resealed++
	retired, err := r.Retire(t.Context(), done.Old[0])
	h.must(err)
	if done.Resealed != 1 || retired.Kept != "" {
		t.Errorf("the rotation did %+v, %+v", done, retired)
	}
	if _, err := r.Rotate(t.Context()); err == nil {
		t.Error("the retired key was taken for a new one")
	}
	h.deps.Setting = two
	h.opens(h.open(), "a")
	if _, err := os.Stat(h.deps.Path); err == nil {
		t.Error("a key file was written")
	}
}

// A command whose connection breaks while it waits has no lock any more: another
// may do its work, and the database knows one current key all the same.
func TestARotationThatLostItsLockChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.deps.Wait = 20 * time.Second
	far := h.open()
	h.must(put(t.Context(), far, "a"))
	count := func(sql string) (n int) {
		h.must(h.pool.QueryRow(t.Context(), sql).Scan(&n))
		return n
	}
	beat := func(held string) {
		_, err := h.pool.Exec(t.Context(), `insert into master_key_node (node_id, host, held, sealing, seen_wall_at)
			select '00000000-0000-4000-8000-00000000000f', 'far', array(select id from master_key where `+held+`), mark, now() + interval '1 minute'
			from master_key where state = 'current' on conflict (node_id) do update set held = excluded.held, sealing = excluded.sealing`)
		h.must(err)
	}
	beat("state = 'current'")
	var both sync.WaitGroup
	rotate := func() {
		r := h.open()
		both.Go(func() {
			if _, err := r.Rotate(t.Context()); err != nil && !errors.Is(err, errBusy) && !strings.Contains(err.Error(), "unlock") {
				t.Error(err)
			}
		})
	}
	rotate()
	h.until("the first waits", func() bool { return count("select count(*) from master_key where state = 'next'") == 1 })
	const holders = `from pg_locks where locktype = 'advisory' and objid = 7305003 and granted and database = (select oid from pg_database where datname = current_database())`
	if n := count("select count(*) from (select pg_terminate_backend(pid) " + holders + ") ended"); n != 1 {
		t.Fatalf("%d processes held the lock", n)
	}
	h.until("its lock is gone", func() bool { return count("select count(*) "+holders) == 0 })
	rotate()
	h.until("the second has the lock", func() bool { return count("select count(*) "+holders) == 1 })
	beat("true")
	h.until("one of them made the key current", func() bool { return count("select count(*) from master_key where state = 'old'") == 1 })
	beat("true")
	both.Wait()
	if n := count("select count(*) from master_key where state = 'current'"); n != 1 {
		t.Errorf("%d keys are current", n)
	}
	h.opens(h.open(), "a")
}

// Only one command at a time changes the keys.
func TestTwoRotationsAtOnceAreOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := h.open()
	h.must(r.alone(t.Context(), func() error {
		if _, err := h.open().Rotate(t.Context()); !errors.Is(err, errBusy) {
			t.Errorf("a second rotation: %v", err)
		}
		if _, err := h.open().Retire(t.Context(), "00"); !errors.Is(err, errBusy) {
			t.Errorf("a retirement meanwhile: %v", err)
		}
		return nil
	}))
	_, err := r.Rotate(t.Context())
	h.must(err)
}
