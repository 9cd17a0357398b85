package dev.penstock.runtime.cli.about;

import dev.penstock.runtime.launch.BuiltVersion;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.PositionalParamSpec;

/**
 * The manual page of a command in troff's man macros, out of what picocli knows for the help. It
 * has no date, so that equal sources give equal pages.
 *
 * @param name such as {@code penstock-schedule-show}
 */
record ManPage(String name, String text) {
    /** The page of a command, then those of all commands below it. */
    static List<ManPage> all(CommandSpec command) {
        return Stream.concat(
                        Stream.of(of(command)),
                        below(command).flatMap(child -> all(child).stream()))
                .toList();
    }

    private static Stream<CommandSpec> below(CommandSpec command) {
        return command.subcommands().values().stream().distinct().map(CommandLine::getCommandSpec);
    }

    private static ManPage of(CommandSpec command) {
        String name = name(command);
        List<String> lines = new ArrayList<>();
        lines.add(
                ".TH \"%s\" 1 \"\" \"penstock %s\" \"Penstock\""
                        .formatted(
                                name.toUpperCase(Locale.ROOT), BuiltVersion.text().split(" ")[0]));
        String description = words(command.usageMessage().description());
        section(
                lines,
                "NAME",
                List.of(plain(name) + " \\- " + plain(description.replaceAll("\\.$", ""))));
        section(lines, "SYNOPSIS", literal(synopsis(command).lines()));
        section(lines, "ARGUMENTS", terms(command.positionalParameters(), ManPage::label));
        section(lines, "OPTIONS", terms(command.options(), ManPage::label));
        section(lines, "COMMANDS", commands(command));
        section(
                lines,
                "EXAMPLES",
                literal(Stream.of(command.usageMessage().footer()).map(ManPage::formatted)));
        section(
                lines,
                "EXIT STATUS",
                List.of(
                        plain(
                                "0: done; 1: it failed; 2: bad input, with all problems at once;"
                                        + " 130: interrupted, with what was done saved.")));
        if (command.parent() != null) {
            section(
                    lines,
                    "SEE ALSO",
                    List.of(".BR %s (1)".formatted(plain(name(command.parent())))));
        }
        return new ManPage(name, String.join("\n", lines) + "\n");
    }

    private static String name(CommandSpec command) {
        return command.qualifiedName("-");
    }

    private static String synopsis(CommandSpec command) {
        return new Help(command, Help.defaultColorScheme(Help.Ansi.OFF)).synopsis(0);
    }

    private static void section(List<String> lines, String title, List<String> body) {
        if (!body.isEmpty()) {
            lines.add(".SH " + title);
            lines.addAll(body);
        }
    }

    private static <A extends ArgSpec> List<String> terms(
            Collection<A> arguments, Function<A, String> label) {
        return arguments.stream()
                .filter(argument -> !argument.hidden())
                .flatMap(
                        argument ->
                                Stream.of(
                                        ".TP",
                                        label.apply(argument),
                                        plain(words(argument.description()))))
                .toList();
    }

    private static String label(OptionSpec option) {
        String names =
                Stream.of(option.names())
                        .map(name -> "\\fB" + plain(name) + "\\fR")
                        .collect(Collectors.joining(", "));
        return option.arity().max() == 0
                ? names
                : names + "=\\fI" + plain(option.paramLabel()) + "\\fR";
    }

    private static String label(PositionalParamSpec parameter) {
        return "\\fI" + plain(parameter.paramLabel()) + "\\fR";
    }

    private static List<String> commands(CommandSpec command) {
        return below(command)
                .flatMap(
                        child ->
                                Stream.of(
                                        ".TP",
                                        ".BR %s (1)".formatted(plain(name(child))),
                                        plain(words(child.usageMessage().description()))))
                .toList();
    }

    /** Lines that stay as they are. */
    private static List<String> literal(Stream<String> text) {
        List<String> lines = text.map(ManPage::plain).toList();
        return lines.isEmpty()
                ? lines
                : Stream.of(Stream.of(".nf"), lines.stream(), Stream.of(".fi"))
                        .flatMap(part -> part)
                        .toList();
    }

    private static String words(String[] text) {
        return Stream.of(text).map(ManPage::formatted).collect(Collectors.joining(" ")).strip();
    }

    /** As picocli understands it: {@code %n} and {@code %%}. */
    private static String formatted(String text) {
        return String.format(Locale.ROOT, text);
    }

    /** Text that troff takes as it is. */
    private static String plain(String text) {
        String escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("\n", " ");
        return escaped.startsWith(".") || escaped.startsWith("'") ? "\\&" + escaped : escaped;
    }
}
