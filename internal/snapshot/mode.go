package snapshot

// Bits of a mode, as Linux has them; trees of any machine are read anywhere.
const (
	modeFormat = 0o170000
	modeFile   = 0o100000
	modeDir    = 0o040000
	modeLink   = 0o120000
	modeFifo   = 0o010000
	modeChar   = 0o020000
	modeBlock  = 0o060000
	modeSocket = 0o140000
	modeSetuid = 0o4000
	modeSetgid = 0o2000
	modeSticky = 0o1000
)
