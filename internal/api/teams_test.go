package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/api"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// found makes a Pro team of three seats whose admin is p, and returns its id.
func (w *town) found(p person) string {
	w.t.Helper()
	teamID := id.New()
	w.must(pg.InTx(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(w.t.Context(), `insert into team (id, name, description, plan, state, max_members, created_by, created_at)
			values ($1, 'Crew', '', 'pro', 'active', 3, $2, $3)`, teamID, uuid.MustParse(p.token), w.clock.Now())
		if err != nil {
			return err
		}
		return w.wallet.OpenTx(w.t.Context(), tx, teamID, w.clock.Now())
	}))
	w.join(p, teamID.String(), team.Admin)
	return teamID.String()
}

// join puts a person into a team.
func (w *town) join(p person, teamID string, role team.Role) {
	w.t.Helper()
	_, err := w.pool.Exec(w.t.Context(), `insert into membership (id, team_id, user_id, role, created_at)
		values ($1, $2, $3, $4, $5)`, id.New(), teamID, p.token, role, w.clock.Now())
	w.must(err)
}

func (w *town) email(p person) string { return w.people[p.token].Email }

func (w *town) invite(by person, teamID, email string) answer {
	w.t.Helper()
	return w.call(by.token, "POST", "/teams/"+teamID+"/invite", `{"email":"`+email+`"}`)
}

// refused checks a refusal with the sentence that a person reads.
func (w *town) refused(a answer, status int, code, detail string) {
	w.t.Helper()
	if p := w.problem(a, status, code); p.Detail != detail {
		w.t.Errorf("%s says %q, want %q", code, p.Detail, detail)
	}
}

// From the invitation of a known and of an unknown address to who is in the
// team, as the page walks it.
func TestInvitingOverHTTP(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	admin, bob := w.move(0), w.move(0)
	crew := w.found(admin)
	path := "/teams/" + crew
	if got := strings.TrimSpace(w.is(w.call(admin.token, "GET", path+"/pending-invitations", ""), 200).Body.String()); got != "[]" {
		t.Errorf("no invitations are %s", got)
	}
	w.clock.Advance(time.Second) // members are listed in the order in which they came
	known := w.is(w.invite(admin, crew, strings.ToUpper(w.email(bob))), 200).Body.String()
	unknown := w.is(w.invite(admin, crew, "Ada@Example.org"), 200).Body.String()
	if strings.TrimSpace(known) != `{"status":"accepted"}` || strings.TrimSpace(unknown) != `{"status":"pending"}` {
		t.Errorf("answered %s and %s", known, unknown)
	}
	var list []struct {
		ID, Email string
		ExpiresAt time.Time `json:"expires_at"`
	}
	w.is(w.call(bob.token, "GET", path+"/pending-invitations", ""), 200).json(t, &list)
	if len(list) != 1 || list[0].Email != "ada@example.org" || !list[0].ExpiresAt.Equal(w.clock.Now().Add(14*24*time.Hour)) {
		t.Fatalf("pending: %+v", list)
	}
	w.refused(w.invite(admin, crew, w.email(bob)), 409, "invite_member", "This person is a member of the team already.")
	w.refused(w.invite(admin, crew, "eve@example.org"), 409, "invite_seats", "All seats of this team are taken.")
	w.is(w.invite(admin, crew, "ada@example.org"), 200) // renews
	w.problem(w.call(admin.token, "DELETE", path+"/pending-invitations/"+list[0].ID, ""), 404, "invitation_not_found")
	w.is(w.call(admin.token, "GET", path+"/pending-invitations", ""), 200).json(t, &list)
	w.is(w.call(admin.token, "DELETE", path+"/pending-invitations/"+list[0].ID, ""), 204)
	w.problem(w.call(admin.token, "DELETE", path+"/pending-invitations/"+list[0].ID, ""), 404, "invitation_not_found")
	var members []struct {
		Role, Email string
		UserID      string `json:"user_id"`
	}
	w.is(w.call(bob.token, "GET", path+"/members", ""), 200).json(t, &members)
	if len(members) != 2 || members[1].Email != w.email(bob) || members[1].Role != "member" {
		t.Errorf("members: %+v", members)
	}
}

func TestInvitingIsRefused(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	admin, member, viewer := w.move(0), w.move(0), w.move(0)
	crew := w.found(admin)
	w.join(member, crew, team.Member)
	w.join(viewer, crew, team.Viewer)
	for email, detail := range map[string]string{
		"": "Email is required", " ": "Email is required", "ada": "Please enter a valid email address",
		strings.Repeat("a", 250) + "@example.org": "Email must be less than 255 characters",
	} {
		w.refused(w.invite(admin, crew, email), 422, "invite_email", detail)
	}
	for _, p := range []person{member, viewer} {
		w.refused(w.invite(p, crew, "ada@example.org"), 403, "role", "Your role in this team does not allow this.")
		w.problem(w.call(p.token, "DELETE", "/teams/"+crew+"/pending-invitations/"+id.New().String(), ""), 403, "role")
	}
	const upgrade = "Upgrade to Pro to invite team members"
	w.refused(w.invite(admin, admin.team, "ada@example.org"), 403, "invite_plan", upgrade)
	w.refused(w.call(admin.token, "GET", "/teams/"+admin.team+"/pending-invitations", ""), 403, "invite_plan", upgrade)
}

func TestMembersOverHTTP(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	admin, member, viewer := w.move(0), w.move(0), w.move(0)
	crew := w.found(admin)
	of := func(teamID string, who person) string { return "/teams/" + teamID + "/members/" + who.token }
	w.refused(w.call(admin.token, "DELETE", of(admin.team, admin), ""), 409, "member_personal", "Cannot remove member from personal team")
	w.refused(w.call(admin.token, "DELETE", of(crew, admin), ""), 409, "member_last", "Cannot remove the last team member")
	w.join(member, crew, team.Member)
	w.join(viewer, crew, team.Viewer)
	w.refused(w.call(admin.token, "DELETE", of(crew, admin), ""), 409, "member_admin_self", "Admins cannot remove themselves")
	w.problem(w.call(member.token, "DELETE", of(crew, viewer), ""), 403, "role")
	w.problem(w.call(member.token, "PATCH", of(crew, member), `{"role":"admin"}`), 403, "role")
	w.problem(w.call(admin.token, "PATCH", of(crew, member), `{"role":"owner"}`), 422, "")
	w.refused(w.call(admin.token, "PATCH", of(crew, admin), `{"role":"member"}`), 409, "member_last_admin", "The last admin of a team stays admin.")
	a := w.is(w.call(admin.token, "PATCH", of(crew, member), `{"role":"viewer"}`), 200)
	if diff := cmp.Diff(names("id user_id email role"), fields(t, a.Body.Bytes())); diff != "" || !strings.Contains(a.Body.String(), `"role":"viewer"`) {
		t.Errorf("%s %s", diff, a.Body)
	}
	w.problem(w.call(admin.token, "DELETE", of(crew, w.move(0)), ""), 404, "member_not_found")
	w.is(w.call(admin.token, "DELETE", of(crew, viewer), ""), 204)
	w.is(w.call(member.token, "DELETE", of(crew, member), ""), 204)
	w.problem(w.call(member.token, "GET", "/teams/"+crew+"/members", ""), 404, "team_not_found")
}

func TestChangingAndDeletingATeamOverHTTP(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	admin, member := w.move(0), w.move(0)
	crew := w.found(admin)
	w.join(member, crew, team.Member)
	w.problem(w.call(member.token, "PATCH", "/teams/"+crew, `{"name":"Theirs"}`), 403, "role")
	w.problem(w.call(admin.token, "PATCH", "/teams/"+crew, `{"other":1}`), 422, "invalid_input")
	w.refused(w.call(admin.token, "PATCH", "/teams/"+crew, `{"name":" "}`), 422, "team_name", "The team name must have 1 to 80 characters.")
	a := w.is(w.call(admin.token, "PATCH", "/teams/"+crew, `{"name":" Docks "}`), 200)
	if diff := cmp.Diff(names("id name description plan is_personal max_members role created_at"), fields(t, a.Body.Bytes())); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(a.Body.String(), `"name":"Docks"`) {
		t.Errorf("renamed: %s", a.Body)
	}
	w.problem(w.call(member.token, "DELETE", "/teams/"+crew, ""), 403, "role")
	w.refused(w.call(admin.token, "DELETE", "/teams/"+admin.team, ""), 409, "team_personal", "A personal team cannot be deleted.")
	w.is(w.call(admin.token, "DELETE", "/teams/"+crew, ""), 204)
	for _, path := range []string{"/teams/" + crew + "/members", "/pods?team_id=" + crew, "/wallet/balance?team_id=" + crew} {
		w.problem(w.call(admin.token, "GET", path, ""), 404, "team_not_found")
	}
	w.problem(w.call(admin.token, "DELETE", "/teams/"+crew, ""), 404, "team_not_found")
	if a := w.is(w.call(member.token, "GET", "/user/info", ""), 200); strings.Contains(a.Body.String(), crew) {
		t.Errorf("a deleted team is listed: %s", a.Body)
	}
}

// However they come, invitations and removals never fill a team beyond its seats.
func TestInvitingAtOnceOverHTTP(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	admin := w.move(0)
	crew := w.found(admin)
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			a := w.invite(admin, crew, fmt.Sprintf("ada%d@example.org", i%12))
			if a.Code != 200 && a.Code != 409 {
				t.Errorf("%d %s", a.Code, a.Body)
			}
		})
	}
	wg.Wait()
	var list []struct{ Email string }
	w.is(w.call(admin.token, "GET", "/teams/"+crew+"/pending-invitations", ""), 200).json(t, &list)
	if len(list) != 2 || list[0].Email == list[1].Email {
		t.Errorf("two seats were free, pending: %+v", list)
	}
}

func TestInterestOverHTTP(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	admin, viewer := w.move(0), w.move(0)
	crew := w.found(admin)
	w.join(viewer, crew, team.Viewer)
	get := func(p person, product string) string {
		a := w.is(w.call(p.token, "GET", "/product-interest?team_id="+crew+"&product="+product, ""), 200)
		return strings.TrimSpace(a.Body.String())
	}
	post := func(p person, product, interested string) answer {
		return w.call(p.token, "POST", "/product-interest", `{"team_id":"`+crew+`","product":"`+product+`","interested":`+interested+`}`)
	}
	want := func(product string, interested bool) string {
		return fmt.Sprintf(`{"team_id":"%s","product":"%s","interested":%t}`, crew, product, interested)
	}
	if got := get(viewer, "batch-inference"); got != want("batch-inference", false) {
		t.Errorf("at first: %s", got)
	}
	for _, step := range []struct {
		by         person
		interested bool
	}{{viewer, true}, {admin, true}, {admin, false}, {viewer, false}} {
		a := w.is(post(step.by, "batch-inference", fmt.Sprint(step.interested)), 201)
		for _, got := range []string{strings.TrimSpace(a.Body.String()), get(admin, "batch-inference")} {
			if got != want("batch-inference", step.interested) {
				t.Errorf("after %t: %s", step.interested, got)
			}
		}
	}
	if got := get(admin, "multi-node-clusters"); got != want("multi-node-clusters", false) {
		t.Errorf("the other product: %s", got)
	}
	var p api.Problem
	for _, a := range []answer{
		post(admin, "gpus", "true"), post(admin, "batch-inference", `"yes"`),
		w.call(admin.token, "GET", "/product-interest?team_id="+crew+"&product=gpus", ""),
		w.call(admin.token, "GET", "/product-interest?team_id="+crew, ""),
	} {
		if p = w.problem(a, 422, ""); p.Detail == "" {
			t.Error("refused without a word")
		}
	}
}
