package dev.penstock.runtime.chat;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;

/** What the operators, filters, tests and methods of templates do, as in Python. */
final class Values {
    private Values() {}

    static boolean truth(Object value) {
        return switch (value) {
            case Absent _ -> false;
            case Boolean b -> b;
            case Long n -> n != 0;
            case String s -> !s.isEmpty();
            case Collection<?> c -> !c.isEmpty();
            case Map<?, ?> m -> !m.isEmpty();
            default -> true;
        };
    }

    static String text(Object value) {
        return switch (value) {
            case Absent absent -> absent == Absent.NONE ? "None" : "";
            case Boolean b -> b ? "True" : "False";
            case Long n -> n.toString();
            case String s -> s;
            default -> throw new TemplateException("a list or an object cannot be written as text");
        };
    }

    static Object add(TemplateWork work, Object a, Object b) {
        if (a instanceof Long x && b instanceof Long y) {
            return x + y;
        }
        if (a instanceof String x && b instanceof String y) {
            return work.joined(x, y);
        }
        if (a instanceof List<?> x && b instanceof List<?> y) {
            List<Object> both = new ArrayList<>(x);
            both.addAll(y);
            return both;
        }
        throw new TemplateException("cannot add %s and %s".formatted(kind(a), kind(b)));
    }

    static long number(Object value) {
        if (value instanceof Long n) {
            return n;
        }
        if (value instanceof Boolean b) {
            return b ? 1 : 0;
        }
        throw new TemplateException("expected a number, got " + kind(value));
    }

    static Object arithmetic(String sign, Object a, Object b) {
        long x = number(a);
        long y = number(b);
        if (y == 0 && !sign.equals("-") && !sign.equals("*")) {
            throw new TemplateException("a division by zero");
        }
        return switch (sign) {
            case "-" -> x - y;
            case "*" -> x * y;
            case "//" -> Math.floorDiv(x, y);
            case "%" -> Math.floorMod(x, y);
            default -> throw new TemplateException("the operator " + sign + " is not supported");
        };
    }

    static boolean equal(Object a, Object b) {
        if (a instanceof Boolean || b instanceof Boolean) {
            boolean numbers =
                    (a instanceof Boolean || a instanceof Long)
                            && (b instanceof Boolean || b instanceof Long);
            return numbers && number(a) == number(b);
        }
        return a.equals(b);
    }

    static boolean compare(String sign, Object a, Object b) {
        return switch (sign) {
            case "==" -> equal(a, b);
            case "!=" -> !equal(a, b);
            case "in" -> in(a, b);
            default -> {
                int order =
                        a instanceof String x && b instanceof String y
                                ? x.compareTo(y)
                                : Long.compare(number(a), number(b));
                yield switch (sign) {
                    case "<" -> order < 0;
                    case ">" -> order > 0;
                    case "<=" -> order <= 0;
                    default -> order >= 0;
                };
            }
        };
    }

    private static boolean in(Object a, Object b) {
        return switch (b) {
            case String s when a instanceof String part -> s.contains(part);
            case List<?> list -> list.stream().anyMatch(each -> equal(a, each));
            case Map<?, ?> map -> map.containsKey(a);
            default -> throw new TemplateException("cannot look into " + kind(b));
        };
    }

    static Object member(Object of, Object key) {
        if (of instanceof Map<?, ?> map) {
            Object found = map.get(key);
            return found == null ? Absent.UNDEFINED : found;
        }
        if (of instanceof List<?> list && key instanceof Long index) {
            int i = (int) (index < 0 ? index + list.size() : index);
            return i >= 0 && i < list.size() ? list.get(i) : Absent.UNDEFINED;
        }
        if (of instanceof String s && key instanceof Long index) {
            int i = (int) (index < 0 ? index + s.length() : index);
            return i >= 0 && i < s.length() ? s.substring(i, i + 1) : Absent.UNDEFINED;
        }
        if (of == Absent.UNDEFINED) {
            throw new TemplateException("'" + key + "' of something that is not defined");
        }
        return Absent.UNDEFINED;
    }

    /** Some of a list or a text; bounds that are not numbers are its ends. */
    static Object slice(Object of, Object from, Object to, Object by) {
        long step = by instanceof Long n ? n : 1;
        if (step == 0 || !(of instanceof List<?> || of instanceof String)) {
            throw new TemplateException("cannot take a slice of " + kind(of));
        }
        int size = of instanceof String s ? s.length() : ((List<?>) of).size();
        step = Math.clamp(step, -size - 1, size + 1); // further is as far
        long first = bound(from, size, step, step > 0 ? 0 : size - 1);
        long end = bound(to, size, step, step > 0 ? size : -1);
        List<Object> some = new ArrayList<>();
        StringBuilder text = new StringBuilder();
        for (long i = first; step > 0 ? i < end : i > end; i += step) {
            if (of instanceof String s) {
                text.append(s.charAt((int) i));
            } else {
                some.add(((List<?>) of).get((int) i));
            }
        }
        return of instanceof String ? text.toString() : some;
    }

    private static long bound(Object given, int size, long step, long usual) {
        if (!(given instanceof Long n)) {
            return usual;
        }
        long from = n < 0 ? n + size : n;
        return step > 0 ? Math.clamp(from, 0, size) : Math.clamp(from, -1, size - 1);
    }

    static List<?> list(Object value) {
        return switch (value) {
            case List<?> list -> list;
            case Map<?, ?> map -> List.copyOf(map.keySet());
            case String s -> s.codePoints().mapToObj(Character::toString).toList();
            case Absent absent when absent == Absent.UNDEFINED -> List.of();
            default -> throw new TemplateException("cannot go through " + kind(value));
        };
    }

    static boolean test(String name, Object value) {
        return switch (name) {
            case "defined" -> value != Absent.UNDEFINED;
            case "undefined" -> value == Absent.UNDEFINED;
            case "none" -> value == Absent.NONE;
            case "string" -> value instanceof String;
            case "mapping" -> value instanceof Map;
            case "sequence", "iterable" ->
                    value instanceof List || value instanceof Map || value instanceof String;
            case "boolean" -> value instanceof Boolean;
            case "number", "integer" -> value instanceof Long;
            case "true" -> value.equals(true);
            case "false" -> value.equals(false);
            case "odd" -> Math.floorMod(number(value), 2L) == 1;
            case "even" -> Math.floorMod(number(value), 2L) == 0;
            default -> throw new TemplateException("the test '" + name + "' is not supported");
        };
    }

    static Object filter(TemplateWork work, String name, Object value, List<Object> arguments) {
        return switch (name) {
            case "trim" -> text(value).strip();
            case "upper", "lower" -> method(work, text(value), name, List.of());
            case "length", "count" -> (long) size(value);
            case "first" -> member(listed(value), 0L);
            case "last" -> member(listed(value), -1L);
            case "list" -> list(value);
            case "string" -> text(value);
            case "default", "d" ->
                    value == Absent.UNDEFINED
                                    || (arguments.size() > 1
                                            && truth(arguments.get(1))
                                            && !truth(value))
                            ? arguments.isEmpty() ? "" : arguments.getFirst()
                            : value;
            case "join" ->
                    work.join(
                            arguments.isEmpty() ? "" : text(arguments.getFirst()),
                            list(value).stream().map(Values::text).toList());
            case "replace" -> method(work, text(value), name, arguments);
            default -> throw new TemplateException("the filter '" + name + "' is not supported");
        };
    }

    private static Object listed(Object value) {
        return value instanceof String ? value : list(value);
    }

    private static int size(Object value) {
        return value instanceof String s ? s.codePointCount(0, s.length()) : list(value).size();
    }

    static Object method(TemplateWork work, Object of, String name, List<Object> arguments) {
        if (of instanceof Map<?, ?> && name.equals("get") && !arguments.isEmpty()) {
            Object found = member(of, arguments.getFirst());
            Object otherwise = arguments.size() > 1 ? arguments.get(1) : Absent.NONE;
            return found == Absent.UNDEFINED ? otherwise : found;
        }
        if (!(of instanceof String s)) {
            throw new TemplateException(
                    "the method '%s' of %s is not supported".formatted(name, kind(of)));
        }
        String argument = arguments.isEmpty() ? "" : text(arguments.getFirst());
        return switch (name) {
            case "strip", "lstrip", "rstrip" -> strip(s, name, arguments, argument);
            case "upper" -> s.toUpperCase(Locale.ROOT);
            case "lower" -> s.toLowerCase(Locale.ROOT);
            case "startswith" -> s.startsWith(argument);
            case "endswith" -> s.endsWith(argument);
            case "split" -> split(s, arguments, argument);
            case "replace" -> replace(work, s, arguments);
            default -> throw new TemplateException("the method '" + name + "' is not supported");
        };
    }

    private static String replace(TemplateWork work, String s, List<Object> arguments) {
        if (arguments.size() < 2) {
            throw new TemplateException("'replace' needs what to replace, and by what");
        }
        return work.replace(s, text(arguments.get(0)), text(arguments.get(1)));
    }

    private static String strip(String s, String name, List<Object> arguments, String signs) {
        int from = 0;
        int to = s.length();
        while (!name.equals("rstrip") && from < to && goes(s.charAt(from), arguments, signs)) {
            from++;
        }
        while (!name.equals("lstrip") && from < to && goes(s.charAt(to - 1), arguments, signs)) {
            to--;
        }
        return s.substring(from, to);
    }

    private static boolean goes(char c, List<Object> arguments, String signs) {
        return arguments.isEmpty() ? Character.isWhitespace(c) : signs.indexOf(c) >= 0;
    }

    private static Object split(String s, List<Object> arguments, String separator) {
        if (arguments.isEmpty()) {
            return s.isBlank() ? List.of() : List.of(s.strip().split("\\s+"));
        }
        if (separator.isEmpty()) {
            throw new TemplateException("cannot split at nothing");
        }
        return List.of(s.split(Pattern.quote(separator), -1));
    }

    static String kind(Object value) {
        return switch (value) {
            case Absent absent -> absent == Absent.NONE ? "none" : "something not defined";
            case Boolean _ -> "a boolean";
            case Long _ -> "a number";
            case String _ -> "a text";
            case List<?> _ -> "a list";
            default -> "an object";
        };
    }
}
