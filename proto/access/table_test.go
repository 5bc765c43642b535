package access

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "grl/proto/grl/v1" // registers the services
)

// TestEveryProcedureHasARule walks the services of grl.v1: a procedure without a
// rule fails here, and is refused to everyone.
func TestEveryProcedureHasARule(t *testing.T) {
	left := maps.Clone(rules)
	protoregistry.GlobalFiles.RangeFilesByPackage("grl.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				path := fmt.Sprintf("/%s/%s", service.FullName(), service.Methods().Get(j).Name())
				if _, ok := rules[path]; !ok {
					t.Errorf("%s has no rule in table.go: nobody may call it", path)
				}
				delete(left, path)
			}
		}
		return true
	})
	want := []string{
		"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
	}
	if got := slices.Sorted(maps.Keys(left)); !slices.Equal(got, want) {
		t.Errorf("rules of no procedure of ours: %v, want %v", got, want)
	}
}

// TestMayEdit holds what an editor may change.
func TestMayEdit(t *testing.T) {
	editor := Person{Level: Editor, Services: []string{"pay"}, Owners: []string{"team-a"}}
	tests := []struct {
		name           string
		p              Person
		service, owner string
		want           bool
	}{
		{"own service", editor, "pay", "team-b", true},
		{"service of an own owner", editor, "shop", "team-a", true},
		{"another's", editor, "shop", "team-b", false},
		{"without an owner", editor, "shop", "", false},
		{"editor of an empty owner", Person{Level: Editor, Owners: []string{""}}, "shop", "", false},
		{"viewer with services", Person{Level: Viewer, Services: []string{"pay"}}, "pay", "", false},
		{"admin", Person{Level: Admin}, "shop", "", true},
		{"nobody", Person{Services: []string{"pay"}}, "pay", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.MayEdit(tt.service, tt.owner); got != tt.want {
				t.Errorf("%+v.MayEdit(%q, %q) = %v, want %v", tt.p, tt.service, tt.owner, got, tt.want)
			}
		})
	}
}
