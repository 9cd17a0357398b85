package dev.penstock.systemtests.documents;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A command of this program in a document.
 *
 * @param place file and line
 * @param words the arguments, as a shell would hand them over
 */
record DocumentedCommand(String place, List<String> words) {
    private static final Pattern IN_BLOCK =
            Pattern.compile("^(?:[A-Z_]+=\\S*(?: \\$\\(.*\\)\\S*)? )?(?:\\./)?penstock (.*)$");
    private static final Pattern IN_PROSE = Pattern.compile("`(?:\\./)?penstock ([^`]+)`");

    /** A word with quotes in it or around it, or a comment. */
    private static final Pattern WORD = Pattern.compile("#.*|(?:'[^']*'|\"[^\"]*\"|[^\\s'\"])+");

    /** Returns the commands in the code blocks of a document, in order. */
    static List<DocumentedCommand> inBlocks(Path document) throws IOException {
        List<String> lines = Files.readAllLines(document);
        List<DocumentedCommand> found = new ArrayList<>();
        boolean fenced = false;
        for (int i = 0; i < lines.size(); i++) {
            fenced ^= lines.get(i).startsWith("```");
            if (!fenced && !lines.get(i).startsWith("    ")) {
                continue;
            }
            String place = document.getFileName() + ":" + (i + 1);
            StringBuilder text = new StringBuilder(lines.get(i).strip());
            while (text.toString().endsWith("\\")) {
                text.setLength(text.length() - 1);
                text.append(lines.get(++i).strip());
            }
            Matcher command = IN_BLOCK.matcher(text);
            if (command.matches()) {
                found.add(new DocumentedCommand(place, split(command.group(1))));
            }
        }
        return found;
    }

    /** Returns the commands in a document's sentences, which have placeholders or no arguments. */
    static List<DocumentedCommand> inProse(Path document) throws IOException {
        String text = Files.readString(document);
        List<DocumentedCommand> found = new ArrayList<>();
        Matcher command = IN_PROSE.matcher(text);
        while (command.find()) {
            long line = text.substring(0, command.start()).lines().count();
            found.add(
                    new DocumentedCommand(
                            document.getFileName() + ":" + line, split(command.group(1))));
        }
        return found;
    }

    /**
     * Returns the lines of the code block that contains this text.
     *
     * @throws IllegalArgumentException if no block contains it, or several do
     */
    static List<String> block(Path document, String text) throws IOException {
        List<List<String>> blocks = new ArrayList<>(List.of(new ArrayList<>()));
        for (String line : Files.readAllLines(document)) {
            if (line.startsWith("    ")) {
                blocks.getLast().add(line.strip());
            } else if (!blocks.getLast().isEmpty()) {
                blocks.add(new ArrayList<>());
            }
        }
        List<List<String>> found =
                blocks.stream()
                        .filter(block -> block.stream().anyMatch(line -> line.contains(text)))
                        .toList();
        if (found.size() != 1) {
            throw new IllegalArgumentException(
                    "%s: expected one block with %s, got %d"
                            .formatted(document.getFileName(), text, found.size()));
        }
        return found.getFirst();
    }

    /**
     * Returns the commands of a block with their words as bash passes them on, after calling
     * functions.
     */
    static List<List<String>> asBashSees(List<String> block)
            throws IOException, InterruptedException {
        String script =
                "penstock() { printf '%s\\001' \"$@\"; echo; }\n"
                        + String.join("\n", block).replace("./penstock", "penstock");
        Process bash =
                new ProcessBuilder("bash", "-eu", "-c", script).redirectErrorStream(true).start();
        List<String> said = bash.inputReader().lines().toList();
        if (bash.waitFor() != 0) {
            throw new IllegalStateException("bash failed: " + said);
        }
        return said.stream().map(line -> List.of(line.split("\u0001"))).toList();
    }

    private static List<String> split(String text) {
        return WORD.matcher(text)
                .results()
                .map(match -> match.group())
                .takeWhile(word -> !word.startsWith("#"))
                .map(word -> word.replaceAll("['\"]", ""))
                .toList();
    }

    /** Returns whether the command starts with these words. */
    boolean is(String... first) {
        return words.size() >= first.length
                && words.subList(0, first.length).equals(List.of(first));
    }

    /** Returns whether any of these is among the words. */
    boolean has(String... any) {
        return Stream.of(any).anyMatch(words::contains);
    }

    /**
     * Returns whether the reader has to fill something in: {@code RUN}, {@code ..}, {@code $(..)}.
     */
    boolean hasPlaceholders() {
        return words.stream()
                .anyMatch(
                        word ->
                                word.matches("\\[?[A-Z][A-Z_,]*]?")
                                        || word.startsWith("[")
                                        || word.contains("..")
                                        || word.contains("$("));
    }

    @Override
    public String toString() {
        return place + ": penstock " + String.join(" ", words);
    }
}
