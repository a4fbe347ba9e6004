package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// A sealed volume is one as the API tells of it.
type sealedVolume struct {
	ID      string
	TeamKey bool `json:"team_key"`
	Locked  bool
}

func (w *town) volumeIs(a answer, status int, locked bool) sealedVolume {
	w.t.Helper()
	var v sealedVolume
	w.is(a, status).json(w.t, &v)
	if !v.TeamKey || v.Locked != locked {
		w.t.Errorf("the volume is %+v, want locked %t", v, locked)
	}
	return v
}

func keyBody(key string) string { return `{"key":"` + key + `"}` }

// A volume is made with a key, locked, refused wherever its files are asked for,
// and unlocked; lists say which it is.
func TestAVolumeIsLockedAndUnlocked(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(10 * money.Dollar)
	crew := w.found(p)
	viewer, member := w.move(0), w.move(0)
	w.join(viewer, crew, team.Viewer)
	w.join(member, crew, team.Member)
	w.must(pg.InTx(t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := w.wallet.CreditTx(t.Context(), tx, wallet.Credit{
			TeamID: uuid.MustParse(crew), Amount: 100 * money.Dollar, Source: wallet.Test, Key: crew, ReferenceID: crew,
			Description: "Top-up", At: w.clock.Now(),
		})
		return err
	}))
	in := "?team_id=" + crew
	key := "hpk_" + id.Token()
	made := w.volumeIs(w.call(p.token, "POST", "/volumes", `{"team_id":"`+crew+`","name":"secret","key":"`+key+`"}`), 201, false)
	at := "/volumes/" + made.ID
	root := t.TempDir()
	w.must(os.WriteFile(filepath.Join(root, "a.txt"), []byte("text"), 0o600))
	release := w.write(person{p.token, crew}, made.ID, root)
	w.problem(w.call(p.token, "POST", at+"/lock"+in, ""), 409, "volume_in_use")
	release()

	file := at + "/versions/latest/file?path=a.txt&team_id=" + crew
	w.is(w.call(viewer.token, "GET", file, ""), 200)
	for range 2 { // locking a locked one is fine
		w.volumeIs(w.call(member.token, "POST", at+"/lock"+in, ""), 200, true)
	}
	var list []sealedVolume
	w.is(w.call(viewer.token, "GET", "/volumes"+in, ""), 200).json(t, &list)
	if diff := cmp.Diff([]sealedVolume{{made.ID, true, true}}, list); diff != "" {
		t.Errorf("the list: %s", diff)
	}
	sshKey := w.make(p, "/ssh-keys", person{p.token, crew}.keyBody())
	locked := map[string]answer{
		"a file":      w.call(p.token, "GET", file, ""),
		"a folder":    w.call(p.token, "GET", at+"/versions/latest/files"+in, ""),
		"an archive":  w.call(p.token, "GET", at+"/versions/latest/tar"+in, ""),
		"a return":    w.call(p.token, "POST", at+"/versions/1/restore"+in, ""),
		"a pod on it": w.call(p.token, "POST", "/pods", person{p.token, crew}.podBody(made.ID, sshKey)),
	}
	for name, a := range locked {
		if f := w.problem(a, 409, "volume_locked"); f.Detail != "This volume is locked. Unlock it with its key first." {
			t.Errorf("%s: %q", name, f.Detail)
		}
	}
	w.is(w.call(viewer.token, "GET", at+"/versions"+in, ""), 200)

	w.problem(w.call(viewer.token, "POST", at+"/unlock"+in, keyBody(key)), 403, "")
	w.problem(w.call(viewer.token, "POST", at+"/lock"+in, ""), 403, "")
	w.problem(w.call(p.token, "POST", at+"/unlock"+in, keyBody("hpk_"+id.Token())), 422, "volume_key_wrong")
	w.problem(w.call(p.token, "POST", at+"/unlock"+in, keyBody("secret")), 422, "volume_key")
	w.problem(w.call(p.token, "POST", at+"/unlock"+in, `{}`), 422, "invalid_input")
	plain := w.make(p, "/volumes", `{"team_id":"`+crew+`","name":"plain","key":null}`)
	w.problem(w.call(p.token, "POST", "/volumes/"+plain+"/unlock"+in, keyBody(key)), 409, "volume_no_key")
	w.problem(w.call(p.token, "POST", "/volumes/"+plain+"/lock"+in, ""), 409, "volume_no_key")
	for _, bad := range []string{"", "hpk_", key + "a", key[:46] + "="} {
		body, err := json.Marshal(map[string]string{"team_id": crew, "key": bad})
		w.must(err)
		w.problem(w.call(p.token, "POST", "/volumes", string(body)), 422, "volume_key")
	}

	w.volumeIs(w.call(member.token, "POST", at+"/unlock"+in, keyBody(key)), 200, false)
	if got := w.is(w.call(viewer.token, "GET", file, ""), 200).Body.String(); got != "text" {
		t.Errorf("unlocked, the file is %q", got)
	}
	w.is(w.call(p.token, "POST", "/pods", person{p.token, crew}.podBody(made.ID, sshKey)), 201)
	w.clock.Advance(2 * time.Hour)
	w.must(w.volumes.LockDue(t.Context()))
	w.is(w.call(p.token, "GET", "/volumes"+in, ""), 200).json(t, &list)
	if len(list) != 2 || list[1].Locked {
		t.Errorf("under a pod: %+v", list)
	}
}

// One request that comes twice makes one volume, and its key stands in no row,
// no answer and no line of the log; nor does a key that was refused.
func TestAKeyIsKeptNowhere(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(10 * money.Dollar)
	key, wrong := "hpk_"+id.Token(), "hpk_"+id.Token()
	body := `{"team_id":"` + p.team + `","name":"secret","key":"` + key + `"}`
	first := w.is(w.call(p.token, "POST", "/volumes", body, "Idempotency-Key", "one"), 201).Body.String()
	again := w.is(w.call(p.token, "POST", "/volumes", body, "Idempotency-Key", "one"), 201).Body.String()
	if first != again {
		t.Errorf("the second answer is %s, not %s", again, first)
	}
	other := strings.Replace(body, key, wrong, 1)
	w.problem(w.call(p.token, "POST", "/volumes", other, "Idempotency-Key", "one"), 422, "idempotency_mismatch")
	var list []sealedVolume
	w.is(w.call(p.token, "GET", "/volumes?team_id="+p.team, ""), 200).json(t, &list)
	if len(list) != 1 {
		t.Fatalf("%d volumes", len(list))
	}
	at := "/volumes/" + list[0].ID
	in := "?team_id=" + p.team
	told := first + w.call(p.token, "POST", at+"/lock"+in, "").Body.String() +
		w.call(p.token, "POST", at+"/unlock"+in, keyBody(wrong)).Body.String() +
		w.call(p.token, "POST", at+"/unlock"+in, `{"key":["`+wrong+`"]}`).Body.String() +
		w.call(p.token, "POST", at+"/unlock"+in, keyBody(wrong+"0")).Body.String() +
		w.is(w.call(p.token, "POST", at+"/unlock"+in, keyBody(key)), http.StatusOK).Body.String()
	rows := w.rows()
	if !strings.Contains(rows, list[0].ID) {
		t.Fatal("the database is not searched")
	}
	for name, text := range map[string]string{"an answer": told, "the log": w.log.String(), "the database": rows} {
		for _, secret := range []string{key[4:], wrong[4:]} {
			if strings.Contains(text, secret) {
				t.Errorf("a key is in %s", name)
			}
		}
	}
}

// rows is every row of every table as text.
func (w *town) rows() string {
	w.t.Helper()
	var all strings.Builder
	rows, err := w.pool.Query(w.t.Context(), `select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`)
	w.must(err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.must(err)
	for _, table := range tables {
		var text string
		w.must(w.pool.QueryRow(w.t.Context(), `select coalesce(string_agg(t::text, ' '), '') from `+pgx.Identifier{table}.Sanitize()+` t`).Scan(&text))
		all.WriteString(text)
	}
	return all.String()
}
