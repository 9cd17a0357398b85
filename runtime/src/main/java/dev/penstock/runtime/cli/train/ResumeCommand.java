package dev.penstock.runtime.cli.train;

import dev.penstock.runtime.cli.command.ShellWord;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** The command line that goes on with a run, made of the one that started it. */
final class ResumeCommand {
    /** Of a start alone, or said anew. */
    private static final Set<String> LEFT_OUT = Set.of("--init", "--run-dir", "--dump-gradients");

    private static final String RESUME = "--resume";

    private ResumeCommand() {}

    /**
     * Returns the command in the words of a shell.
     *
     * @param words behind the program's name
     * @param run directory of the run
     */
    static String of(List<String> words, Path run) {
        List<String> kept = new ArrayList<>(List.of("penstock"));
        for (int i = 0; i < words.size(); i++) {
            String word = words.get(i);
            if (LEFT_OUT.contains(word)) {
                i++; // and its value
            } else if (!word.equals(RESUME)
                    && LEFT_OUT.stream().noneMatch(option -> word.startsWith(option + "="))) {
                kept.add(word);
            }
        }
        kept.addAll(List.of("--run-dir", run.toString(), RESUME));
        return kept.stream().map(ShellWord::quoted).collect(Collectors.joining(" "));
    }
}
