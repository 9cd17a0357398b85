package dev.penstock.runtime.chat;

import dev.penstock.runtime.chat.TemplatePieces.Kind;
import dev.penstock.runtime.chat.TemplatePieces.Token;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Reads the expressions of one tag, loosest operator first. */
final class Expressions {
    private static final Set<String> COMPARISONS = Set.of("==", "!=", "<", ">", "<=", ">=", "in");
    private static final Token END = new Token(Kind.SIGN, "the end of the tag");

    private final List<Token> tokens;
    private int at;
    private int depth;

    /**
     * @throws TemplateException if the tag is too long: what has many operators is nested as deep
     */
    Expressions(List<Token> tokens) {
        if (tokens.size() > TemplateWork.MOST_WORDS) {
            throw new TemplateException(
                    "expected tags of at most %,d words and signs, got one of %,d"
                            .formatted(TemplateWork.MOST_WORDS, tokens.size()));
        }
        this.tokens = tokens;
    }

    /** Something that has a value. */
    interface Expression {
        Object in(Scope scope);
    }

    boolean ended() {
        return at == tokens.size();
    }

    private Token next() {
        return ended() ? END : tokens.get(at);
    }

    /** Takes a word if it is the next one. */
    boolean takes(String word) {
        if (next().is(word)) {
            at++;
            return true;
        }
        return false;
    }

    void expect(String word) {
        if (!takes(word)) {
            throw new TemplateException("expected '%s', got '%s'".formatted(word, next().text()));
        }
    }

    String name() {
        Token token = next();
        if (token.kind() != Kind.NAME) {
            throw new TemplateException("expected a name, got '" + token.text() + "'");
        }
        at++;
        return token.text();
    }

    void requireEnd() {
        if (!ended()) {
            throw new TemplateException("'%s' is not supported here".formatted(next().text()));
        }
    }

    /** A whole expression, with {@code a if b else c}. */
    Expression expression() {
        deeper();
        Expression value = or();
        if (!takes("if")) {
            depth--;
            return value;
        }
        Expression condition = or();
        Expression otherwise = takes("else") ? expression() : _ -> Absent.UNDEFINED;
        depth--;
        return scope -> Values.truth(condition.in(scope)) ? value.in(scope) : otherwise.in(scope);
    }

    private void deeper() {
        if (++depth > TemplateWork.DEEPEST) {
            throw new TemplateException(
                    "expected expressions nested at most %d deep, got deeper ones"
                            .formatted(TemplateWork.DEEPEST));
        }
    }

    /** Without {@code if}, which goes on behind a loop's list. */
    Expression or() {
        Expression left = and();
        while (takes("or")) {
            Expression a = left;
            Expression b = and();
            left =
                    scope -> {
                        Object value = a.in(scope);
                        return Values.truth(value) ? value : b.in(scope);
                    };
        }
        return left;
    }

    private Expression and() {
        Expression left = not();
        while (takes("and")) {
            Expression a = left;
            Expression b = not();
            left =
                    scope -> {
                        Object value = a.in(scope);
                        return Values.truth(value) ? b.in(scope) : value;
                    };
        }
        return left;
    }

    private Expression not() {
        if (takes("not")) {
            deeper();
            Expression negated = not();
            depth--;
            return scope -> !Values.truth(negated.in(scope));
        }
        return comparison();
    }

    private Expression comparison() {
        Expression left = joined();
        while (true) {
            Expression a = left;
            if (next().is("not") && at + 1 < tokens.size() && tokens.get(at + 1).is("in")) {
                at += 2;
                Expression b = joined();
                left = scope -> !compare(scope, "in", a, b);
            } else if (next().kind() != Kind.TEXT && COMPARISONS.contains(next().text())) {
                String sign = tokens.get(at++).text();
                Expression b = joined();
                left = scope -> compare(scope, sign, a, b);
            } else {
                return left;
            }
        }
    }

    private static boolean compare(Scope scope, String sign, Expression a, Expression b) {
        Object left = a.in(scope);
        return Values.compare(sign, left, scope.work().counted(b.in(scope)));
    }

    private Expression joined() {
        Expression left = sum();
        while (takes("~")) {
            Expression a = left;
            Expression b = sum();
            left =
                    scope ->
                            scope.work()
                                    .counted(
                                            scope.work()
                                                    .joined(
                                                            Values.text(a.in(scope)),
                                                            Values.text(b.in(scope))));
        }
        return left;
    }

    private Expression sum() {
        Expression left = product();
        while (next().is("+") || next().is("-")) {
            boolean plus = tokens.get(at++).is("+");
            Expression a = left;
            Expression b = product();
            left =
                    plus
                            ? scope ->
                                    scope.work()
                                            .counted(
                                                    Values.add(
                                                            scope.work(), a.in(scope), b.in(scope)))
                            : scope -> Values.arithmetic("-", a.in(scope), b.in(scope));
        }
        return left;
    }

    private Expression product() {
        Expression left = sign();
        while (next().is("*") || next().is("//") || next().is("%")) {
            String sign = tokens.get(at++).text();
            Expression a = left;
            Expression b = sign();
            left = scope -> Values.arithmetic(sign, a.in(scope), b.in(scope));
        }
        return left;
    }

    private Expression sign() {
        if (takes("-")) {
            deeper();
            Expression value = sign();
            depth--;
            return scope -> -Values.number(value.in(scope));
        }
        return filtered(postfix(value()));
    }

    private Expression filtered(Expression unfiltered) {
        Expression value = unfiltered;
        while (true) {
            Expression of = value;
            if (takes("|")) {
                String name = name();
                List<Expression> arguments = takes("(") ? arguments() : List.of();
                value =
                        scope ->
                                scope.work()
                                        .counted(
                                                Values.filter(
                                                        scope.work(),
                                                        name,
                                                        of.in(scope),
                                                        all(arguments, scope)));
            } else if (takes("is")) {
                boolean negated = takes("not");
                String name = name();
                value = scope -> Values.test(name, of.in(scope)) != negated;
            } else {
                return value;
            }
        }
    }

    private Expression postfix(Expression plain) {
        Expression value = plain;
        while (true) {
            Expression of = value;
            if (takes(".")) {
                String name = name();
                if (takes("(")) {
                    List<Expression> arguments = arguments();
                    value =
                            scope ->
                                    scope.work()
                                            .counted(
                                                    Values.method(
                                                            scope.work(),
                                                            of.in(scope),
                                                            name,
                                                            all(arguments, scope)));
                } else {
                    value = scope -> Values.member(of.in(scope), name);
                }
            } else if (takes("[")) {
                value = subscript(of);
            } else {
                return value;
            }
        }
    }

    private Expression subscript(Expression of) {
        Expression none = _ -> Absent.NONE;
        Expression first = next().is(":") ? none : expression();
        if (takes("]")) {
            return scope -> Values.member(of.in(scope), first.in(scope));
        }
        expect(":");
        Expression end = next().is(":") || next().is("]") ? none : expression();
        Expression step = takes(":") && !next().is("]") ? expression() : none;
        expect("]");
        return scope ->
                scope.work()
                        .counted(
                                Values.slice(
                                        of.in(scope),
                                        first.in(scope),
                                        end.in(scope),
                                        step.in(scope)));
    }

    private Expression value() {
        if (ended()) {
            throw new TemplateException("a tag ends where a value was expected");
        }
        Token token = tokens.get(at++);
        return switch (token.kind()) {
            case TEXT -> _ -> token.text();
            case NUMBER -> {
                long number = integer(token.text());
                yield _ -> number;
            }
            case NAME -> named(token.text());
            case SIGN ->
                    switch (token.text()) {
                        case "(" -> {
                            Expression inner = expression();
                            expect(")");
                            yield inner;
                        }
                        case "[" -> {
                            List<Expression> items = until("]");
                            yield scope -> all(items, scope);
                        }
                        default ->
                                throw new TemplateException(
                                        "'" + token.text() + "' is not supported here");
                    };
        };
    }

    private static long integer(String digits) {
        try {
            return Long.parseLong(digits);
        } catch (NumberFormatException e) {
            throw new TemplateException("expected a number of 64 bits, got " + digits);
        }
    }

    private Expression named(String name) {
        return switch (name) {
            case "true", "True" -> _ -> true;
            case "false", "False" -> _ -> false;
            case "none", "None" -> _ -> Absent.NONE;
            default -> takes("(") ? call(name) : scope -> scope.get(name);
        };
    }

    private Expression call(String name) {
        return switch (name) {
            case "raise_exception" -> refusal(arguments());
            case "namespace" -> namespace();
            default -> throw new TemplateException("the function '" + name + "' is not supported");
        };
    }

    private static Expression refusal(List<Expression> arguments) {
        return scope -> {
            throw new TemplateException(
                    "it says: "
                            + all(arguments, scope).stream()
                                    .map(Values::text)
                                    .findFirst()
                                    .orElse("nothing"));
        };
    }

    private Expression namespace() {
        Map<String, Expression> members = new HashMap<>();
        while (!takes(")")) {
            String member = name();
            expect("=");
            members.put(member, expression());
            if (!next().is(")")) {
                expect(",");
            }
        }
        return scope -> {
            Map<String, Object> space = new HashMap<>();
            members.forEach((member, value) -> space.put(member, value.in(scope)));
            return space;
        };
    }

    private List<Expression> arguments() {
        return until(")");
    }

    private List<Expression> until(String end) {
        List<Expression> items = new ArrayList<>();
        while (!takes(end)) {
            items.add(expression());
            if (!next().is(end)) {
                expect(",");
            }
        }
        return items;
    }

    private static List<Object> all(List<Expression> items, Scope scope) {
        List<Object> values = new ArrayList<>();
        items.forEach(item -> values.add(item.in(scope)));
        return values;
    }
}
