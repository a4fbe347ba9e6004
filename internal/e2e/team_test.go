package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/apitype"
)

// TestATeamIsPaidForAndRenewed founds a team of 3 by the test checkout of the
// real binary: it is there once it is paid, with an empty wallet of its own,
// and its months are billed as business time goes, until it is deleted.
func TestATeamIsPaidForAndRenewed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	u := s.signIn()
	checkout := steady(t, func() (apitype.Checkout, error) {
		return u.CheckoutTeam(t.Context(), apitype.TeamCheckout{Name: "Docks", Description: "North quay", MemberCount: "3"})
	})
	if teams := u.teams(); len(teams) != 1 || !teams[0].IsPersonal {
		t.Errorf("before the payment: %+v", teams)
	}
	if _, page := fetch(t, http.MethodGet, checkout.CheckoutURL, nil, ""); !strings.Contains(string(page), "$300.00") {
		t.Errorf("the page does not name the price: %s", page)
	}
	back := s.choose(checkout, "pay")
	teamID := back.Query().Get("team_id")
	if back.Path != "/billing" || back.Query().Get("subscribe") != "success" {
		t.Errorf("the payer goes on to %s", back)
	}
	var docks apitype.Team
	untilFor(t, 10*time.Second, "the team", func() bool {
		teams := u.teams()
		i := slices.IndexFunc(teams, func(x apitype.Team) bool { return x.ID == teamID })
		if i >= 0 {
			docks = teams[i]
		}
		return i >= 0
	})
	if docks.Name != "Docks" || docks.Description != "North quay" || docks.Plan != "pro" || docks.Role != "admin" || docks.IsPersonal ||
		docks.MaxMembers == nil || *docks.MaxMembers != 3 {
		t.Errorf("the team is %+v", docks)
	}
	in := *u.Client
	in.TeamID = teamID
	if b, err := in.Balance(t.Context()); err != nil || b.Balance != "0.00" && b.Balance != "0" {
		t.Errorf("the new wallet has %s (%v)", b.Balance, err)
	}
	s.choose(checkout, "pay") // the form is posted again
	advance(t, s, 40*24*time.Hour)
	if n := s.invoices(teamID); n != 2 {
		t.Errorf("%d months are billed after 40 days, want 2", n)
	}
	if err := u.Call(t.Context(), http.MethodDelete, "/teams/"+teamID, nil, nil); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the subscription", func() bool {
		return s.count(`select count(*) from testpay_subscription where status = 'canceled'`) == 1 &&
			s.count(`select count(*) from subscription where status = 'canceled'`) == 1
	})
	advance(t, s, 40*24*time.Hour)
	if n := s.invoices(teamID); n != 2 {
		t.Errorf("%d months are billed for a deleted team, want 2", n)
	}
}

// TestAnUnpaidPlanEndsAfterItsGrace lets the card of a team of two be declined
// at the first renewal, until the plan is gone: what each of them sees, what the
// letters say, and what a running pod costs.
func TestAnUnpaidPlanEndsAfterItsGrace(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	payer, mate := s.signIn(), s.signIn()
	checkout := steady(t, func() (apitype.Checkout, error) {
		return payer.CheckoutTeam(t.Context(), apitype.TeamCheckout{Name: "Docks", MemberCount: "2"})
	})
	payer.TeamID = s.choose(checkout, "pay_once").Query().Get("team_id")
	mate.TeamID = payer.TeamID
	sees := func(u *user) (seen string) {
		for _, x := range u.teams() {
			if x.ID == u.TeamID {
				seen = x.Plan + " " + x.Role
			}
		}
		return seen
	}
	want := func(when, one, other, notices string) {
		t.Helper()
		if got := []string{sees(payer), sees(mate)}; !slices.Equal(got, []string{one, other}) {
			t.Errorf("%s they see %q, want %q and %q", when, got, one, other)
		}
		var list []apitype.Notice
		if err := payer.Call(t.Context(), http.MethodGet, "/notices?team_id="+payer.TeamID, nil, &list); err != nil {
			t.Fatal(err)
		}
		list = slices.DeleteFunc(list, func(n apitype.Notice) bool { return !strings.HasPrefix(n.Kind, "plan_") })
		got := ""
		if len(list) > 0 {
			got = list[0].Kind
		}
		if got != notices || len(list) > 1 {
			t.Errorf("%s the payer is told %+v, want %q", when, list, notices)
		}
	}
	untilFor(t, 10*time.Second, "the team", func() bool { return sees(payer) == "pro admin" })
	if err := payer.Call(t.Context(), http.MethodPost, "/teams/"+payer.TeamID+"/invite", apitype.Invite{Email: mate.email}, nil); err != nil {
		t.Fatal(err)
	}
	want("at first", "pro admin", "pro member", "")
	advance(t, s, 31*24*time.Hour)
	want("after a declined renewal", "pro admin", "pro member", "plan_unpaid")
	payer.wantSubjects(s, "The subscription of Docks could not be paid")
	payer.pay("2000")
	payer.addKey()
	v := steady(t, func() (apitype.Volume, error) { return payer.CreateVolume(t.Context(), "data") })
	o := payer.offer("H100_80GB")
	pod := payer.rent(o, v.ID)
	if pod.Price != o.Price || o.Price == o.ListPrice {
		t.Errorf("the pod costs %s, the offer %s of %s", pod.Price, o.Price, o.ListPrice)
	}
	advance(t, s, 4*24*time.Hour)
	want("in the last 72 hours", "pro admin", "pro member", "plan_ends")
	payer.wantSubjects(s, "The subscription of Docks could not be paid", "The Pro plan of Docks ends in 72 hours")
	advance(t, s, 4*24*time.Hour)
	want("after the grace", "hobby admin", "hobby viewer", "")
	payer.wantSubjects(s, "The subscription of Docks could not be paid", "The Pro plan of Docks ends in 72 hours")
	i := slices.IndexFunc(steady(t, func() ([]apitype.Pod, error) { return payer.Pods(t.Context()) }), func(p apitype.Pod) bool {
		return p.ID == pod.ID && p.Price == o.ListPrice && p.Status == "ready"
	})
	if i < 0 {
		t.Error("the running pod does not cost the list price")
	}
	payer.end(pod.ID)
}

// TestAnUnpaidTeamLeavesNothing lets the day of a checkout pass.
func TestAnUnpaidTeamLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	u := s.signIn()
	checkout := steady(t, func() (apitype.Checkout, error) {
		return u.CheckoutTeam(t.Context(), apitype.TeamCheckout{Name: "Docks", MemberCount: "1"})
	})
	if back := s.choose(checkout, "cancel"); back.Path != "/create-team" {
		t.Errorf("a payer who cancels goes to %s", back)
	}
	advance(t, s, 24*time.Hour)
	if _, page := fetch(t, http.MethodGet, checkout.CheckoutURL, nil, ""); !strings.Contains(string(page), "This checkout has expired.") {
		t.Error("the checkout can still be paid")
	}
	if teams := u.teams(); len(teams) != 1 {
		t.Errorf("the payer has %+v", teams)
	}
	if n := s.count(`select count(*) from team where state = 'inactive'`); n != 0 {
		t.Errorf("%d reserved teams are left", n)
	}
}

func (u *user) teams() []apitype.Team {
	u.t.Helper()
	return steady(u.t, func() (apitype.UserInfo, error) { return u.UserInfo(u.t.Context()) }).Teams
}

// choose ends a test checkout and returns where the payer goes next.
func (s *server) choose(checkout apitype.Checkout, outcome string) *url.URL {
	s.t.Helper()
	return steady(s.t, func() (*url.URL, error) {
		resp, err := noRedirect.PostForm(checkout.CheckoutURL, url.Values{"outcome": {outcome}})
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusSeeOther {
			return nil, fmt.Errorf("the checkout answered %d", resp.StatusCode)
		}
		return resp.Location()
	})
}

// invoices counts the paid months of a team at the test checkout.
func (s *server) invoices(teamID string) int {
	return s.count(`select count(*) from testpay_invoice i join testpay_subscription u on u.id = i.subscription_id
		where i.status = 'paid' and not i.prorated and u.team_id = $1`, teamID)
}

func (s *server) count(sql string, args ...any) (n int) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.database())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(s.t.Context()))
	if err := conn.QueryRow(s.t.Context(), sql, args...).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}
