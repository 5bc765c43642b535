package chart

import "testing"

func TestPath(t *testing.T) {
	tests := []struct {
		name string
		draw func(*Path)
		want string
	}{
		{"nothing", func(*Path) {}, ""},
		{"one point", func(p *Path) { p.Point(1, 2.04) }, "M1 2"},
		{"a level part is two points", func(p *Path) {
			for x := range 5 {
				p.Point(float64(x), 3)
			}
		}, "M0 3L4 3"},
		{"a gap", func(p *Path) {
			p.Point(0, 1)
			p.Point(1, 1)
			p.Break()
			p.Break()
			p.Point(3, 1)
			p.Point(4, 2)
		}, "M0 1L1 1M3 1L4 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p Path
			tt.draw(&p)
			if got := p.String(); got != tt.want {
				t.Errorf("path %q, want %q", got, tt.want)
			}
		})
	}
}
