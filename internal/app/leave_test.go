package app

import (
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/team"
)

// drawKey makes a public key of its own.
func drawKey(t *testing.T) string {
	t.Helper()
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(id.Bytes(ed25519.SeedSize)).Public())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// keyless takes the queued letters about pods without keys, sends them and
// returns whom they went to.
func (q *quay) keyless() []string {
	q.t.Helper()
	rows, err := q.pool.Query(q.t.Context(), `delete from river_job where kind = 'pod.keyless' returning args`)
	q.must(err)
	jobs, err := pgx.CollectRows(rows, pgx.RowTo[json.RawMessage])
	q.must(err)
	for _, raw := range jobs {
		var j pod.KeylessJob
		q.must(json.Unmarshal(raw, &j))
		for range 2 { // a job may run twice
			q.must(q.pods.SendKeyless(q.t.Context(), j))
		}
	}
	letters, err := q.mailbox.List(q.t.Context())
	q.must(err)
	var to []string
	for _, l := range letters {
		to = append(to, l.To)
	}
	return to
}

// Who leaves takes their keys along: the pods stay, and each admin is told once
// which of them nobody can log in to.
func TestLeavingLeavesPodsWithoutKeys(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	ctx := t.Context()
	ada, bob, cid := q.sailor("ada"), q.sailor("bob"), q.sailor("cid")
	docks := q.crew(ada, bob, cid)
	_, err := q.teams.SetRole(ctx, docks, cid.ID, team.Admin)
	q.must(err)
	q.pay(ada, docks.TeamID(), 50_000_000)
	hers, err := q.pods.Create(ctx, docks, q.want(docks, drawKey(t)))
	q.must(err)
	bobs := q.scope(bob, docks.TeamID(), team.Use)
	left, err := q.pods.Create(ctx, bobs, q.want(bobs, drawKey(t)))
	q.must(err)
	// One more of the admin's, with Bob's key.
	mixed := q.want(docks, publicKey)
	mixed.KeyID = left.SSHKeyID
	also, err := q.pods.Create(ctx, docks, mixed)
	q.must(err)
	ended, err := q.pods.Create(ctx, bobs, q.want(bobs, drawKey(t)))
	q.must(err)
	q.must(q.pods.Delete(ctx, bobs, ended.ID))

	q.must(q.teams.RemoveMember(ctx, bobs, bob.ID))
	if to := q.keyless(); len(to) != 2 || to[0] == to[1] || strings.Contains(strings.Join(to, " "), bob.Email) {
		t.Fatalf("letters to %q", to)
	}
	letter := q.letter(cid.Email)
	for _, p := range []*pod.Pod{left, also} {
		if !strings.Contains(letter.Text, id.First(p.ID)) || !strings.Contains(letter.HTML, id.First(p.ID)) {
			t.Errorf("the letter does not name %s:\n%s", p.ID, letter.Text)
		}
	}
	for _, p := range []*pod.Pod{hers, ended} {
		if strings.Contains(letter.Text, id.First(p.ID)) {
			t.Errorf("the letter names %s:\n%s", p.ID, letter.Text)
		}
	}
	if !strings.Contains(letter.Text, "bob@example.org is no longer in the team Docks") {
		t.Errorf("the letter: %s", letter.Text)
	}
	pods, err := q.pods.List(ctx, docks)
	if err != nil || len(pods) != 4 {
		t.Errorf("%d pods are listed, %v", len(pods), err)
	}
	if keys, err := q.keys.List(ctx, docks); err != nil || len(keys) != 2 {
		t.Errorf("%d keys are left, %v", len(keys), err)
	}
}

// Who had no key in a pod leaves without a letter, and a letter whose pods have
// ended meanwhile is not sent.
func TestLeavingWithoutALetter(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	ctx := t.Context()
	ada, bob, cid := q.sailor("ada"), q.sailor("bob"), q.sailor("cid")
	docks := q.crew(ada, bob, cid)
	q.pay(ada, docks.TeamID(), 50_000_000)
	bobs := q.scope(bob, docks.TeamID(), team.Use)
	made, err := q.pods.Create(ctx, bobs, q.want(bobs, drawKey(t)))
	q.must(err)
	q.must(q.teams.RemoveMember(ctx, docks, cid.ID))
	if to := q.keyless(); len(to) != 0 {
		t.Errorf("letters to %q when nobody's key left", to)
	}
	q.must(q.teams.RemoveMember(ctx, docks, bob.ID))
	q.must(q.pods.Delete(ctx, docks, made.ID))
	if to := q.keyless(); len(to) != 0 {
		t.Errorf("letters to %q about a pod that ended", to)
	}
}

// A letter that waited goes to nobody who is no admin of the team any more.
func TestALetterThatWaitedGoesToAdminsAlone(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	ctx := t.Context()
	ada, bob, cid, dan := q.sailor("ada"), q.sailor("bob"), q.sailor("cid"), q.sailor("dan")
	docks := q.crew(ada, bob, cid, dan)
	for _, admin := range []team.Person{cid, dan} {
		_, err := q.teams.SetRole(ctx, docks, admin.ID, team.Admin)
		q.must(err)
	}
	q.pay(ada, docks.TeamID(), 50_000_000)
	bobs := q.scope(bob, docks.TeamID(), team.Use)
	_, err := q.pods.Create(ctx, bobs, q.want(bobs, drawKey(t)))
	q.must(err)
	q.must(q.teams.RemoveMember(ctx, docks, bob.ID))
	_, err = q.teams.SetRole(ctx, docks, cid.ID, team.Viewer)
	q.must(err)
	q.must(q.teams.RemoveMember(ctx, docks, dan.ID))
	if to := q.keyless(); len(to) != 1 || to[0] != ada.Email {
		t.Errorf("letters to %q, want one to %q", to, ada.Email)
	}
}
