package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
)

// Mutant is one change of the source, which is in effect when its number is chosen.
type Mutant struct {
	ID       int
	File     string
	Line     int
	Func     string
	Operator string
	// Text is what is changed, as it stands in the source, and Nth which of several in its function that
	// look and are changed alike.
	Text string
	Nth  int
}

// Name says which mutant it is, whatever its line is.
func (m Mutant) Name() string {
	name := m.Func + ": " + m.Operator + ": " + m.Text
	if m.Nth > 1 {
		name += fmt.Sprintf(" (%d)", m.Nth)
	}
	return name
}

// mutator writes all mutants of a package into its files: each is a branch that is taken when its number
// is that of the variable MUTANT, so that all are compiled once.
type mutator struct {
	mutants []Mutant
	fset    *token.FileSet
	file    string
	source  []byte
	within  string              // the function
	texts   map[ast.Node]string // of nodes, before anything in them was changed
	cases   map[ast.Node]bool   // of switches whose cases are conditions
	named   map[string]int
}

// chosen is the call that says whether a new mutant is in effect.
func (m *mutator) chosen(n ast.Node, at token.Pos, operator string) ast.Expr {
	mutant := Mutant{ID: len(m.mutants) + 1, File: m.file, Line: m.fset.Position(at).Line, Func: m.within, Operator: operator, Text: m.texts[n]}
	m.named[mutant.Name()]++
	mutant.Nth = m.named[mutant.Name()]
	m.mutants = append(m.mutants, mutant)
	return &ast.CallExpr{Fun: ast.NewIdent("mutantChosen_"), Args: []ast.Expr{&ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(mutant.ID)}}}
}

// note keeps the text of what may be changed.
func (m *mutator) note(c *astutil.Cursor) bool {
	switch n := c.Node().(type) {
	case *ast.IfStmt:
		m.texts[n] = m.text(n.Cond)
		return !strings.HasPrefix(m.texts[n], "planted.Bug(") // a mistake of ours, for simulations
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			if clause := clause.(*ast.CaseClause); n.Tag == nil && len(clause.List) == 1 {
				m.cases[clause], m.texts[clause] = true, m.text(clause.List[0])
			}
		}
	case *ast.BinaryExpr, *ast.ExprStmt, *ast.IncDecStmt, *ast.AssignStmt, *ast.BranchStmt:
		m.texts[n] = m.text(n)
	}
	return true
}

// text is a node as it stands in the source, in one line.
func (m *mutator) text(n ast.Node) string {
	return strings.Join(strings.Fields(string(m.source[m.fset.Position(n.Pos()).Offset:m.fset.Position(n.End()).Offset])), " ")
}

// mutate returns the source of a file with all of its mutants in it.
func (m *mutator) mutate(name string, source []byte) ([]byte, error) {
	m.fset, m.file, m.source = token.NewFileSet(), name, source
	m.texts, m.cases = map[ast.Node]string{}, map[ast.Node]bool{}
	file, err := parser.ParseFile(m.fset, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("mutate %s: %w", name, err)
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			m.within, m.named = funcName(f), map[string]int{}
			astutil.Apply(f.Body, m.note, m.change)
		}
	}
	file.Comments = nil // they would stand anywhere
	var out bytes.Buffer
	if err := format.Node(&out, m.fset, file); err != nil {
		return nil, fmt.Errorf("mutate %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// funcName is the name of a function, with its receiver's type.
func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// change puts the mutants of one node in its place, after those of what is in it.
func (m *mutator) change(c *astutil.Cursor) bool {
	switch n := c.Node().(type) {
	case *ast.BinaryExpr:
		if m.cases[c.Parent()] || !constant(c) {
			c.Replace(m.binary(n))
		}
	case *ast.IfStmt:
		n.Cond = or(and(n.Cond, not(m.chosen(n, n.Pos(), "if: never"))), m.chosen(n, n.Pos(), "if: always"))
	case *ast.CaseClause:
		if m.cases[n] {
			n.List[0] = or(and(n.List[0], not(m.chosen(n, n.Case, "case: never"))), m.chosen(n, n.Case, "case: always"))
		}
	case *ast.ExprStmt:
		m.drop(c, n, "call dropped")
	case *ast.IncDecStmt:
		m.drop(c, n, n.Tok.String()+" dropped")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			m.drop(c, n, n.Tok.String()+" dropped")
		}
	case *ast.BranchStmt:
		if n.Tok == token.CONTINUE {
			m.drop(c, n, "continue dropped")
		}
	}
	return true
}

// constant tells whether an expression stands where only a constant may.
func constant(c *astutil.Cursor) bool {
	switch c.Parent().(type) {
	case *ast.ValueSpec, *ast.ArrayType, *ast.CaseClause:
		return true
	}
	return false
}

// drop makes a mutant of a list of statements that lacks one.
func (m *mutator) drop(c *astutil.Cursor, s ast.Stmt, operator string) {
	if c.Index() < 0 { // of an if, a for, a switch
		return
	}
	if _, ok := c.Parent().(*ast.CommClause); ok && c.Name() == "Comm" {
		return
	}
	c.Replace(&ast.IfStmt{Cond: not(m.chosen(s, s.Pos(), operator)), Body: &ast.BlockStmt{List: []ast.Stmt{s}}})
}

// binary makes the mutants of a comparison, or of a logical expression.
func (m *mutator) binary(n *ast.BinaryExpr) ast.Expr {
	switch n.Op {
	case token.EQL, token.NEQ:
		return differs(n, m.chosen(n, n.OpPos, n.Op.String()+" negated"))
	case token.LSS, token.GTR, token.LEQ, token.GEQ:
		negated := differs(n, m.chosen(n, n.OpPos, n.Op.String()+" negated"))
		if calls(n) {
			return negated
		}
		equal := &ast.BinaryExpr{X: n.X, Op: token.EQL, Y: n.Y}
		return differs(negated, and(m.chosen(n, n.OpPos, n.Op.String()+" at its bound"), equal))
	case token.LAND:
		return or(n, and(m.chosen(n, n.OpPos, "&& is ||"), or(n.X, n.Y)))
	case token.LOR:
		return or(and(not(m.chosen(n, n.OpPos, "|| is &&")), n), and(n.X, n.Y))
	}
	return n
}

// calls tells whether an expression calls something: evaluating that twice may change it.
func calls(n ast.Expr) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name, ok := call.Fun.(*ast.Ident)
			found = found || !ok || name.Name != "len" && !strings.HasPrefix(name.Name, "mutant")
		}
		return !found
	})
	return found
}

func paren(x ast.Expr) ast.Expr { return &ast.ParenExpr{X: x} }
func not(x ast.Expr) ast.Expr   { return &ast.UnaryExpr{Op: token.NOT, X: paren(x)} }
func or(x, y ast.Expr) ast.Expr {
	return paren(&ast.BinaryExpr{X: paren(x), Op: token.LOR, Y: paren(y)})
}

func and(x, y ast.Expr) ast.Expr {
	return paren(&ast.BinaryExpr{X: paren(x), Op: token.LAND, Y: paren(y)})
}

func differs(x, y ast.Expr) ast.Expr {
	return paren(&ast.BinaryExpr{X: paren(x), Op: token.NEQ, Y: paren(y)})
}
