package volume_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

// A vault is a node with a volume that only its team's key opens, and with what
// a pod wrote into it. Beside it lies another team's volume without a key.
type vault struct {
	*harbour
	scope  team.Scope
	volume volume.Volume
	key    string
	files  map[string]string
	other  volume.Volume
	secret []string // nothing of it may be found while the volume is locked
}

func newVault(t *testing.T) vault {
	t.Helper()
	h, _, _ := newNode(t)
	h.Retention = usual
	w := vault{harbour: h, scope: h.team(team.Pro)}
	w.volume, w.key = h.createLocked(w.scope)
	word := "canary-" + id.Token()
	w.files = map[string]string{"runs/" + word + ".txt": strings.Repeat("the "+word+" sings\n", 1000), "weights.bin": string(weights(1 << 20))}
	p := w.fill(w.scope, w.volume, w.files)
	random, err := base64.RawURLEncoding.DecodeString(w.key[4:])
	h.must(err)
	var master struct {
		MAC     struct{ K, R []byte }
		Encrypt []byte
	}
	h.must(json.Unmarshal(p.grant.Key, &master))
	w.secret = []string{
		word, w.key, w.key[4:], string(random), w.files["weights.bin"][:64],
		string(master.Encrypt), string(master.MAC.K), string(master.MAC.R), string(p.grant.ChunkerKey),
	}
	stranger := h.team(team.Pro)
	w.other = h.create(stranger)
	w.fill(stranger, w.other, map[string]string{"other": "text"})
	return w
}

// fill has a pod write files into a volume, and leave it.
func (h *harbour) fill(scope team.Scope, v volume.Volume, files map[string]string) *pod {
	h.t.Helper()
	root, state := h.t.TempDir(), h.t.TempDir()
	p := h.bootPod(scope, v.ID, h.node(h.t))
	p.restoreTo(root, state)
	for name, text := range files {
		h.must(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		h.must(os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	p.sync(root, state)
	h.release(p.Attachment)
	h.clock.Advance(time.Minute)
	return p
}

// database is every value of every table as text: bytes in hex.
func (h *harbour) database() string {
	h.t.Helper()
	var all strings.Builder
	for _, table := range h.names(`select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`) {
		var text string
		h.must(h.Pool.QueryRow(h.t.Context(), `select coalesce(string_agg(t::text, ' '), '') from `+pgx.Identifier{table}.Sanitize()+` t`).Scan(&text))
		all.WriteString(text)
	}
	return all.String()
}

func (h *harbour) names(sql string) []string {
	h.t.Helper()
	rows, err := h.Pool.Query(h.t.Context(), sql)
	h.must(err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	h.must(err)
	return names
}

// opened is everything in the database that the master key opens, whatever it
// was sealed for.
func (h *harbour) opened(volumes ...uuid.UUID) []string {
	h.t.Helper()
	var plain []string
	for _, column := range h.names(`select quote_ident(column_name) || ' from ' || quote_ident(table_name) from information_schema.columns
		where table_schema = 'public' and data_type = 'bytea'`) {
		name, _, _ := strings.Cut(column, " ")
		rows, err := h.Pool.Query(h.t.Context(), `select `+column+` where `+name+` is not null`)
		h.must(err)
		values, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		h.must(err)
		for _, value := range values {
			for _, v := range volumes {
				for _, c := range volume.Sealed() {
					if text, err := h.Box.Open(value, c.Purpose(v.String())); err == nil {
						plain = append(plain, string(text))
					}
				}
			}
		}
	}
	return plain
}

// stored is every byte in the store.
func (h *harbour) stored() string {
	h.t.Helper()
	var all strings.Builder
	h.must(filepath.WalkDir(filepath.Dir(h.path("v")), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(path)
		all.Write(text)
		return err
	}))
	return all.String()
}

// found lists which of the secrets stand in a text, as they are or encoded.
func (w vault) found(text string) (found []int) {
	for i, secret := range w.secret {
		raw := []byte(secret)
		forms := []string{secret, hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw)}
		if slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(text, form) }) {
			found = append(found, i)
		}
	}
	return found
}

// Who has the store, the database and the master key of a locked volume has
// neither its files nor its key. With the team's key everything is there again.
func TestALockedVolumeIsReadByNobodyWithoutItsKey(t *testing.T) {
	t.Parallel()
	w := newVault(t)
	both := []uuid.UUID{w.volume.ID, w.other.ID}
	// Unlocked, the node has what opens it: the search does find it, where it is.
	if n := len(w.opened(both...)); n != 4 || len(w.found(strings.Join(w.opened(both...), " "))) == 0 {
		t.Fatalf("the search finds %d values, and not the key of an unlocked volume", n)
	}
	w.lock(w.scope, w.volume.ID)
	for name, text := range map[string]string{
		"store": w.stored(), "database": w.database(), "opened by the master key": strings.Join(w.opened(both...), " "),
	} {
		if found := w.found(text); len(found) != 0 || text == "" {
			t.Errorf("%s: secrets %v are found in %d bytes", name, found, len(text))
		}
	}
	if n := len(w.opened(both...)); n != 3 {
		t.Errorf("%d values open, want the other volume's 3", n)
	}

	for name, read := range map[string]func() error{
		"a version":                  func() error { _, err := w.OpenVersion(t.Context(), w.scope, w.volume.ID, "latest"); return err },
		"a version, by the operator": func() error { _, err := w.OpenAnyVersion(t.Context(), w.volume.ID, "1"); return err },
		"its return": func() error {
			_, err := w.RestoreVersion(t.Context(), w.scope, w.volume.ID, "1", idem.Request{})
			return err
		},
		"its return, by the operator": func() error { _, err := w.RestoreAnyVersion(t.Context(), w.volume.ID, "1"); return err },
		"a pod":                       func() error { _, err := w.attach(w.scope, w.volume.ID); return err },
	} {
		if err := read(); !errors.Is(err, volume.ErrLocked) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if versions, err := w.Versions(t.Context(), w.scope, w.volume.ID); err != nil || len(versions) != 1 {
		t.Errorf("its versions are %+v, %v", versions, err)
	}

	w.unlock(w.scope, w.volume.ID, w.key)
	if diff := cmp.Diff(w.files, w.contents(w.scope, w.volume, "latest")); diff != "" {
		t.Errorf("without a pod: %.500s", diff)
	}
	root, state := t.TempDir(), t.TempDir()
	p := w.bootPod(w.scope, w.volume.ID, w.node(t))
	p.restoreTo(root, state)
	if diff := cmp.Diff(w.files, files(t, root)); diff != "" {
		t.Errorf("in a pod: %.500s", diff)
	}
	if !slices.Contains(w.secret, string(p.grant.ChunkerKey)) {
		t.Error("the chunker key is another one: what is unchanged would be uploaded again")
	}
	h := w.harbour
	h.must(os.WriteFile(filepath.Join(root, "more"), []byte("more"), 0o644))
	p.sync(root, state)
	h.release(p.Attachment)
	h.clock.Advance(time.Minute)
	if versions, err := w.Versions(t.Context(), w.scope, w.volume.ID); err != nil || len(versions) != 2 ||
		versions[0].Changes == nil || *versions[0].Changes != (snapshot.Changes{Added: 1}) {
		t.Errorf("its versions are %+v, %v", versions, err)
	}
	if _, err := w.RestoreVersion(t.Context(), w.scope, w.volume.ID, "1", idem.Request{}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(w.files, w.contents(w.scope, w.volume, "3")); diff != "" {
		t.Errorf("restored: %.500s", diff)
	}
}

// The team's key is the password of the repository for a public tool. Nothing
// else is, neither what the operator is told nor what the master key opens.
func TestResticOpensALockedVolumeWithTheTeamsKeyAlone(t *testing.T) {
	t.Parallel()
	w := newVault(t)
	w.lock(w.scope, w.volume.ID)
	r, err := w.Repository(t.Context(), w.volume.ID)
	w.must(err)
	if r.Password != "" || !r.TeamKey || r.Head == "" {
		t.Errorf("the operator is told %+v", r)
	}
	other, err := w.Repository(t.Context(), w.other.ID)
	w.must(err)
	passwords := append(w.opened(w.volume.ID, w.other.ID), other.Password, "hpk_"+id.Token(), w.key[4:], w.volume.ID.String())
	for i, password := range passwords {
		if out, err := tryRestic(t, w.path(r.Path), password, "cat", "masterkey"); err == nil {
			t.Errorf("password %d opens it: %s", i, out)
		}
	}
	restic(t, w.path(r.Path), w.key, "check", "--read-data")
	target := t.TempDir()
	restic(t, w.path(r.Path), w.key, "restore", "latest", "--target", target)
	if diff := cmp.Diff(w.files, files(t, filepath.Join(target, "workspace"))); diff != "" {
		t.Errorf("restic restores %.500s", diff)
	}
	if keys, err := os.ReadDir(w.path(r.Path) + "/keys"); err != nil || len(keys) != 1 {
		t.Errorf("the repository has %d keys, %v", len(keys), err)
	}
}

// tryRestic runs the public tool, which may refuse.
func tryRestic(t *testing.T, repository, password string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("restic")
	if err != nil {
		t.Fatal("restic is not installed: run scripts/need-tools")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"-r", repository, "--no-cache", "--no-lock"}, args...)...)
	file := filepath.Join(t.TempDir(), "password") // it may have any bytes
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "RESTIC_PASSWORD_FILE="+file)
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "wrong password or no key found") {
		err = errors.Join(err, fmt.Errorf("restic says %s", out))
		t.Error(err)
	}
	return string(out), err
}

// A lock ends what reads the volume: at once on the node that locks it, with the
// next look on the others.
func TestALockEndsWhatReadsTheVolume(t *testing.T) {
	t.Parallel()
	w := newVault(t)
	other := volume.New(w.Deps)
	type reader struct {
		file *volume.File
		tar  *volume.Archive
		open *volume.Open
	}
	read := func(s *volume.Service) (r reader) {
		var err error
		r.open, err = s.OpenVersion(t.Context(), w.scope, w.volume.ID, volume.Latest)
		w.must(err)
		r.file, err = r.open.File(t.Context(), "weights.bin")
		w.must(err)
		if _, err := r.file.Read(make([]byte, 10)); err != nil {
			t.Error(err)
		}
		r.tar, err = r.open.Archive(t.Context(), "")
		w.must(err)
		return r
	}
	ended := func(node string, r reader) {
		t.Helper()
		if n, err := io.Copy(io.Discard, r.file); err == nil || n > 0 {
			t.Errorf("%s: %d more bytes of the file, %v", node, n, err)
		}
		if err := r.tar.WriteTo(t.Context(), io.Discard); !errors.Is(err, volume.ErrLocked) {
			t.Errorf("%s: the archive: %v", node, err)
		}
		if _, _, err := r.open.List(t.Context(), "runs", 0, 10); !errors.Is(err, volume.ErrLocked) {
			t.Errorf("%s: a folder: %v", node, err)
		}
		r.file.Close()
		r.tar.Close()
	}
	here, there := read(w.Service), read(other)
	w.must(other.FollowLocks(t.Context()))
	if _, _, err := there.open.List(t.Context(), "runs", 0, 10); err != nil {
		t.Error(err)
	}
	slow := &gate{at: make(chan struct{}), open: make(chan struct{})}
	running := make(chan error, 1)
	archive := read(w.Service).tar
	go func() { running <- archive.WriteTo(t.Context(), slow) }()
	<-slow.at
	w.lock(w.scope, w.volume.ID)
	close(slow.open)
	if err := <-running; !errors.Is(err, volume.ErrLocked) {
		t.Errorf("an archive that was being written: %v", err)
	}
	ended("here", here)
	w.must(other.FollowLocks(t.Context()))
	ended("another node", there)

	w.unlock(w.scope, w.volume.ID, w.key)
	again := read(other)
	if text, err := io.ReadAll(again.file); err != nil || len(text) != 1<<20-10 {
		t.Errorf("%d bytes after it was unlocked again, %v", len(text), err)
	}
	again.file.Close()
	again.tar.Close()
}

// A gate holds up its first write.
type gate struct {
	at, open chan struct{}
	once     sync.Once
}

func (g *gate) Write(p []byte) (int, error) {
	g.once.Do(func() {
		close(g.at)
		<-g.open
	})
	return len(p), nil
}

// A collection of a volume that is locked meanwhile ends, and waits.
func TestALockEndsACollection(t *testing.T) {
	t.Parallel()
	w := newVault(t)
	node := volume.New(w.Deps)
	reads := 0
	node.Store = watched{w.Deps.Store, func(string) {
		if reads++; reads == 1 { // by another node, of which this one hears
			w.lock(w.scope, w.volume.ID)
			w.must(node.FollowLocks(t.Context()))
		}
	}}
	if _, err := node.Collect(t.Context(), w.volume.ID); !errors.Is(err, volume.ErrLocked) {
		t.Errorf("a collection of a volume that was locked: %v", err)
	}
}
