// Package meter finds what is due in the teams' money and sees to it: wallets
// that ran out, and days to be posted. It owns no table and no money; it asks
// wallet what is due and orders the locks between pods and wallets.
//
// What always holds: a pod is never switched off unless its meter ended in the
// same transaction; every sweep may run on several nodes at once, die anywhere
// and run again.
package meter
