package limiter

import (
	"testing"
	"unsafe"
)

// TestLeafLayout: a decision with a short walk reads two cache lines of a
// leaf, which the allocator aligns since its size is a power of two.
func TestLeafLayout(t *testing.T) {
	var f leaf
	if unsafe.Sizeof(f) != 256 || unsafe.Offsetof(f.inline) != 64 || unsafe.Offsetof(f.table) != 128 {
		t.Errorf("leaf has %d bytes, steps at %d, the rest at %d; want 256, 64, 128",
			unsafe.Sizeof(f), unsafe.Offsetof(f.inline), unsafe.Offsetof(f.table))
	}
}

// TestDecisionLayout: a decision is returned in registers.
func TestDecisionLayout(t *testing.T) {
	if size := unsafe.Sizeof(Decision{}); size > 24 {
		t.Errorf("a Decision has %d bytes, want 24", size)
	}
}
