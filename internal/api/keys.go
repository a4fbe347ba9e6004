package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/sshkey"
	"homeport.dev/homeport/internal/team"
)

func (s *server) registerKeys() {
	session(s, huma.Operation{
		OperationID: "list-ssh-keys", Method: http.MethodGet, Path: "/ssh-keys",
		Summary: "The team's SSH keys, newest first",
	}, s.listKeys)
	session(s, huma.Operation{
		OperationID: "create-ssh-key", Method: http.MethodPost, Path: "/ssh-keys", DefaultStatus: http.StatusCreated,
		Summary: "Keep a public key",
	}, s.createKey)
	session(s, huma.Operation{
		OperationID: "delete-ssh-key", Method: http.MethodDelete, Path: "/ssh-keys/{id}", DefaultStatus: http.StatusNoContent,
		Summary: "Forget a key; it leaves running pods within a minute",
	}, s.deleteKey)
}

func (s *server) listKeys(ctx context.Context, p team.Person, in podsIn) (*list[apitype.SSHKey], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	keys, err := s.Keys.List(ctx, scope)
	if err != nil {
		return nil, err
	}
	return listOf(keys, keyOf), nil
}

func keyOf(k sshkey.SSHKey) apitype.SSHKey {
	return apitype.SSHKey{
		ID: k.ID.String(), TeamID: k.TeamID.String(), Name: k.Name, PublicKey: k.PublicKey, KeyType: k.KeyType,
		Fingerprint: k.Fingerprint, CreatedAt: k.CreatedAt, CreatedBy: k.CreatedBy.String(),
	}
}

type createKeyIn struct {
	Bearer
	Once
	Body apitype.CreateSSHKey
}

func (s *server) createKey(ctx context.Context, p team.Person, in createKeyIn) (*body[apitype.SSHKey], error) {
	scope, err := s.scope(ctx, p, in.Body.TeamID, team.Use)
	if err != nil {
		return nil, err
	}
	k, err := s.Keys.Create(ctx, scope, in.Body.Name, in.Body.PublicKey, in.request(s, p, "POST /ssh-keys"))
	if err != nil {
		return nil, err
	}
	return &body[apitype.SSHKey]{Body: keyOf(k)}, nil
}

func (s *server) deleteKey(ctx context.Context, p team.Person, in OneIn) (*nothing, error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Use)
	if err != nil {
		return nil, err
	}
	keyID, err := parse(in.ID, sshkey.ErrNotFound)
	if err != nil {
		return nil, err
	}
	return nil, s.Keys.Delete(ctx, scope, keyID)
}
