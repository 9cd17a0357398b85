package dev.penstock.runtime.chat;

import dev.penstock.runtime.chat.Expressions.Expression;
import dev.penstock.runtime.chat.TemplatePieces.Piece;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A template in the part of Jinja's language that chat templates use: output, {@code for}, {@code
 * if}, {@code set}, {@code generation}, comments; texts, integers, lists, members, slices and
 * operators; the filters, tests and methods of {@link Values}; {@code namespace} and {@code
 * raise_exception}.
 */
final class Template {
    private final List<Piece> pieces;
    private final Statement whole;
    private int at;
    private int depth;

    private Template(List<Piece> pieces) {
        this.pieces = pieces;
        whole = body(List.of());
    }

    private interface Statement {
        void write(Scope scope, StringBuilder text);
    }

    /**
     * Reads a template.
     *
     * @throws TemplateException if it uses what is not supported
     */
    static Template of(String source) {
        return new Template(TemplatePieces.of(source));
    }

    /**
     * Returns its text.
     *
     * @param work counts what is done
     * @throws TemplateException if it does not take these values, or does too much
     */
    String render(Map<String, Object> variables, TemplateWork work) {
        var scope = new Scope(work);
        variables.forEach(scope::set);
        StringBuilder text = new StringBuilder();
        whole.write(scope, text);
        return text.toString();
    }

    /** Reads statements until a block that begins with one of these words, which stays. */
    private Statement body(List<String> ends) {
        deeper();
        List<Statement> statements = new ArrayList<>();
        while (at < pieces.size() && !isNext(ends)) {
            Piece piece = pieces.get(at++);
            statements.add(
                    switch (piece) {
                        case Piece.Text(String same) -> text(same);
                        case Piece.Output output -> output(new Expressions(output.tokens()));
                        case Piece.Block block -> statement(new Expressions(block.tokens()));
                    });
        }
        if (at == pieces.size() && !ends.isEmpty()) {
            throw new TemplateException("a block without its '" + ends.getLast() + "'");
        }
        depth--;
        return (scope, text) -> {
            for (Statement statement : statements) {
                scope.work().step();
                statement.write(scope, text);
            }
        };
    }

    private void deeper() {
        if (++depth > TemplateWork.DEEPEST) {
            throw new TemplateException(
                    "expected blocks nested at most %d deep, got deeper ones"
                            .formatted(TemplateWork.DEEPEST));
        }
    }

    private boolean isNext(List<String> words) {
        return pieces.get(at) instanceof Piece.Block block
                && !block.tokens().isEmpty()
                && words.stream().anyMatch(block.tokens().getFirst()::is);
    }

    private static Statement text(String same) {
        return (scope, text) -> {
            scope.work().requireRoom((long) text.length() + same.length());
            text.append(same);
        };
    }

    private static Statement output(Expressions words) {
        Expression value = words.expression();
        words.requireEnd();
        return (scope, text) -> {
            String more = scope.work().counted(Values.text(value.in(scope)));
            scope.work().requireRoom((long) text.length() + more.length());
            text.append(more);
        };
    }

    private Statement statement(Expressions words) {
        String kind = words.name();
        return switch (kind) {
            case "if" -> ifs(words);
            case "for" -> loop(words);
            case "set" -> set(words);
            case "generation" -> {
                words.requireEnd();
                Statement inner = body(List.of("endgeneration"));
                at++;
                yield inner;
            }
            default -> throw new TemplateException("the block '" + kind + "' is not supported");
        };
    }

    private Statement ifs(Expressions words) {
        Expression condition = words.expression();
        words.requireEnd();
        Statement then = body(List.of("elif", "else", "endif"));
        Expressions next = new Expressions(((Piece.Block) pieces.get(at++)).tokens());
        String kind = next.name();
        Statement otherwise;
        if (kind.equals("elif")) {
            deeper();
            otherwise = ifs(next);
            depth--;
        } else if (kind.equals("else")) {
            otherwise = body(List.of("endif"));
            at++;
        } else {
            otherwise = (_, _) -> {};
        }
        return (scope, text) -> {
            Statement chosen = Values.truth(condition.in(scope)) ? then : otherwise;
            chosen.write(scope, text);
        };
    }

    private Statement loop(Expressions words) {
        String variable = words.name();
        words.expect("in");
        Expression list = words.or();
        Expression wanted = words.takes("if") ? words.or() : _ -> true;
        words.requireEnd();
        Statement body = body(List.of("else", "endfor"));
        if (isNext(List.of("else"))) {
            throw new TemplateException("'else' of a loop is not supported");
        }
        at++;
        return (scope, text) -> {
            List<Object> chosen = new ArrayList<>();
            for (Object each : scope.work().counted(Values.list(list.in(scope)))) {
                var inner = new Scope(scope);
                inner.set(variable, each);
                if (Values.truth(wanted.in(inner))) {
                    chosen.add(each);
                }
            }
            for (int i = 0; i < chosen.size(); i++) {
                var inner = new Scope(scope);
                inner.set(variable, chosen.get(i));
                inner.set("loop", loopVariable(chosen, i));
                body.write(inner, text);
            }
        };
    }

    private static Map<String, Object> loopVariable(List<Object> items, int i) {
        return Map.of(
                "index",
                i + 1L,
                "index0",
                (long) i,
                "revindex",
                (long) (items.size() - i),
                "revindex0",
                items.size() - i - 1L,
                "first",
                i == 0,
                "last",
                i == items.size() - 1,
                "length",
                (long) items.size(),
                "previtem",
                i == 0 ? Absent.UNDEFINED : items.get(i - 1),
                "nextitem",
                i == items.size() - 1 ? Absent.UNDEFINED : items.get(i + 1));
    }

    @SuppressWarnings(
            "unchecked") // only a namespace is written to, and those are maps of this kind
    private static Statement set(Expressions words) {
        String name = words.name();
        String member = words.takes(".") ? words.name() : "";
        words.expect("=");
        Expression value = words.expression();
        words.requireEnd();
        if (member.isEmpty()) {
            return (scope, _) -> scope.set(name, value.in(scope));
        }
        return (scope, _) -> {
            if (!(scope.get(name) instanceof Map<?, ?> space)) {
                throw new TemplateException("'" + name + "' is not a namespace");
            }
            ((Map<String, Object>) space).put(member, value.in(scope));
        };
    }
}
