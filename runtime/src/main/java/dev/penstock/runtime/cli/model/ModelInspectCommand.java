package dev.penstock.runtime.cli.model;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Shows what a model is made of. */
@Command(
        name = "inspect",
        description = {
            "Shows a model's family, its configuration, and its tensors.",
            "Nothing but tables of contents is read. Exit code 2 if Penstock cannot train or run"
                    + " it; it says why."
        },
        footer = {
            "  penstock model inspect gpt",
            "  penstock model inspect gpt.gguf",
            "  penstock model inspect runs/quickstart-1 --json",
        })
final class ModelInspectCommand extends PenstockCommand {
    /** Lists longer than that are left to the JSON. */
    private static final int LONGEST = 60;

    @Parameters(
            paramLabel = "PATH",
            description =
                    "A Hugging Face folder, a safetensors file or index, a file that torch wrote, a"
                            + " GGUF file, a checkpoint, or a run's folder (its newest whole"
                            + " checkpoint).")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path path;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        ModelFacts facts = ModelFacts.of(path, err()::println);
        err().flush();
        if (json) {
            printJson(facts);
        } else {
            print(facts);
        }
        out().flush();
        facts.problems().forEach(problem -> err().println("penstock: " + problem));
        err().flush();
        return facts.problems().isEmpty() ? ExitCode.OK : ExitCode.BAD_INPUT;
    }

    private void print(ModelFacts facts) {
        out().printf(
                        """
                        %s
                        form        %s
                        family      %s
                        parameters  %,d in %d tensors, %,d bytes
                        config      %s

                        """,
                        facts.path(),
                        facts.form(),
                        facts.family().isEmpty() ? "not said" : facts.family(),
                        facts.parameters(),
                        facts.tensors().size(),
                        facts.bytes(),
                        config(facts.config()));
        TensorTable.lines(facts.tensors()).forEach(out()::println);
    }

    /** One a line, under one another. */
    private static String config(Map<String, Object> config) {
        if (config.isEmpty()) {
            return "none";
        }
        return config.entrySet().stream()
                .map(entry -> entry.getKey() + " = " + shown(entry.getValue()))
                .collect(Collectors.joining("\n            "));
    }

    private static String shown(Object value) {
        String text = String.valueOf(value).replace('\n', ' ');
        return text.length() <= LONGEST ? text : text.substring(0, LONGEST) + "..";
    }
}
