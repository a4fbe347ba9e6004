package app

import (
	"context"
	"path/filepath"
	"slices"

	"homeport.dev/homeport/internal/auth"
	"homeport.dev/homeport/internal/masterkey"
	"homeport.dev/homeport/internal/payment/testpay"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/volume"
)

// masterKeys says where the master keys are and what is sealed under them.
func (a *App) masterKeys() masterkey.Deps {
	return masterkey.Deps{
		Pool: a.pool, Clock: a.clock, Logger: a.logger,
		Setting: a.config.MasterKey, Path: filepath.Join(a.config.StateDir, "master.key"),
		Columns: slices.Concat(volume.Sealed(), auth.Sealed(), pod.Sealed(), testpay.Sealed()),
	}
}

// A MasterKey is how one master key stands, without anything of the key.
type MasterKey = masterkey.Info

// A KeyRotation is what a rotation of the master key did.
type KeyRotation = masterkey.Rotation

// A KeyRetirement is what became of a retired master key.
type KeyRetirement = masterkey.Retirement

// MasterKeys lists the master keys and how many values are sealed under each.
func (m *Admin) MasterKeys(ctx context.Context) ([]MasterKey, error) { return m.app.ring.List(ctx) }

// RotateMasterKey makes a new master key the current one and seals all secrets
// again under it.
func (m *Admin) RotateMasterKey(ctx context.Context) (KeyRotation, error) {
	return m.app.ring.Rotate(ctx)
}

// RetireMasterKey ends a key under which nothing is sealed.
func (m *Admin) RetireMasterKey(ctx context.Context, id string) (KeyRetirement, error) {
	return m.app.ring.Retire(ctx, id)
}
