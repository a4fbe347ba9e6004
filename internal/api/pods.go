package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/sshkey"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

func (s *server) registerPods() {
	session(s, huma.Operation{
		OperationID: "list-pods", Method: http.MethodGet, Path: "/pods",
		Summary: "The team's pods, newest first, with those that ended in the last 15 minutes",
	}, s.listPods)
	session(s, huma.Operation{
		OperationID: "create-pod", Method: http.MethodPost, Path: "/pods", DefaultStatus: http.StatusCreated,
		Summary:     "Rent a pod",
		Description: "The offer is named by what it echoes; price is the most to pay. A pod's CPU and memory limits are shares of its host, not the offer's figures, at sandbox clouds.",
	}, s.createPod)
	session(s, huma.Operation{
		OperationID: "change-pod", Method: http.MethodPatch, Path: "/pods/{id}",
		Summary: "Say whether a pod is started again when its machine is lost",
	}, s.changePod)
	session(s, huma.Operation{
		OperationID: "delete-pod", Method: http.MethodDelete, Path: "/pods/{id}", DefaultStatus: http.StatusNoContent,
		Summary: "End a pod after a last sync",
	}, s.deletePod)
}

type podsIn struct {
	Bearer
	InTeam
}

func (s *server) listPods(ctx context.Context, p team.Person, in podsIn) (*list[apitype.Pod], error) {
	c, err := claim(p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	pods, err := s.Pods.ListClaimed(ctx, c)
	if err != nil {
		return nil, err
	}
	return listOf(pods, func(p pod.Pod) apitype.Pod { return podOf(&p) }), nil
}

func podOf(p *pod.Pod) apitype.Pod {
	out := apitype.Pod{
		ID: p.ID.String(), TeamID: p.TeamID.String(), Status: string(p.Status), StatusReason: p.StatusReason,
		StatusDetail: p.StatusDetail, Progress: p.Progress, CreatedAt: p.CreatedAt, ReadyAt: p.ReadyAt,
		DeleteRequestedAt: p.DeleteRequestedAt, SyncedAt: p.SyncedAt, MeteredUntil: p.MeteredUntil(), EndedAt: p.EndedAt,
		GPUCount: p.GPUCount, GPUType: p.GPUType, Provider: p.Provider, Country: p.Country,
		Price: apitype.Decimal(p.Rate.Decimal()), SSHHost: p.SSHHost, HostKeyFingerprint: p.HostKeyFingerprint,
		VolumeID: p.VolumeID.String(), SSHKeyID: p.SSHKeyID.String(), CreatedBy: p.CreatedBy.String(),
	}
	if p.ReadyAt != nil {
		out.SSHPort = &p.SSHPort
	}
	out.AutoRelaunch, out.RelaunchPending = p.AutoRelaunch, p.RelaunchUntilWallAt != nil
	out.RelaunchOf, out.RelaunchedAs = textOf(p.RelaunchOf), textOf(p.RelaunchedAs)
	return out
}

// textOf is an id that may be absent, as it is sent.
func textOf(of *uuid.UUID) *string {
	if of == nil {
		return nil
	}
	text := of.String()
	return &text
}

type createPodIn struct {
	Bearer
	Once
	Body apitype.CreatePod
}

func (s *server) createPod(ctx context.Context, p team.Person, in createPodIn) (*body[apitype.Pod], error) {
	b := in.Body
	price, err := money.Parse(string(b.Price))
	if err != nil {
		return nil, ErrBadInput.With("price: expected a number of at most 6 decimals").Because(err)
	}
	scope, err := s.scope(ctx, p, b.TeamID, team.Use)
	if err != nil {
		return nil, err
	}
	volumeID, err := parse(b.VolumeID, volume.ErrNotFound)
	if err != nil {
		return nil, err
	}
	keyID, err := parse(b.SSHKeyID, sshkey.ErrNotFound)
	if err != nil {
		return nil, err
	}
	t := offer.Tuple{
		Provider: b.Provider, CloudID: b.CloudID, GPUType: b.GPUType, GPUCount: b.GPUCount, Socket: b.Socket,
		Country: b.Country, IsSpot: b.IsSpot, Security: b.Security,
	}
	if b.DataCenterID != nil {
		t.DataCenterID = *b.DataCenterID
	}
	var before uuid.UUID
	if b.RelaunchOf != nil {
		if before, err = parse(*b.RelaunchOf, pod.ErrNotFound); err != nil {
			return nil, err
		}
	}
	made, err := s.Pods.Create(ctx, scope, pod.Create{
		VolumeID: volumeID, KeyID: keyID, Offer: t, Max: money.Rate(price), Currency: b.Currency,
		AutoRelaunch: b.AutoRelaunch, RelaunchOf: before,
		Once: in.request(s, p, "POST /pods"),
	})
	if err != nil {
		return nil, err
	}
	return &body[apitype.Pod]{Body: podOf(made)}, nil
}

// OneIn is the input of a call on one thing of a team.
type OneIn struct {
	Bearer
	InTeam
	ID string `path:"id"`
}

type changePodIn struct {
	OneIn
	Body apitype.ChangePod
}

func (s *server) changePod(ctx context.Context, p team.Person, in changePodIn) (*body[apitype.Pod], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Use)
	if err != nil {
		return nil, err
	}
	podID, err := parse(in.ID, pod.ErrNotFound)
	if err != nil {
		return nil, err
	}
	changed, err := s.Pods.SetRelaunch(ctx, scope, podID, in.Body.AutoRelaunch)
	if err != nil {
		return nil, err
	}
	return &body[apitype.Pod]{Body: podOf(changed)}, nil
}

func (s *server) deletePod(ctx context.Context, p team.Person, in OneIn) (*nothing, error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Use)
	if err != nil {
		return nil, err
	}
	podID, err := parse(in.ID, pod.ErrNotFound)
	if err != nil {
		return nil, err
	}
	return nil, s.Pods.Delete(ctx, scope, podID)
}
