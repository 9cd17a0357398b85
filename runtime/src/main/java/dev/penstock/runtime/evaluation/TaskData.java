package dev.penstock.runtime.evaluation;

import dev.penstock.runtime.data.Corpus;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataFormat;
import dev.penstock.runtime.data.DataProblem;
import dev.penstock.runtime.data.PreparedTokens;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * What a task reads.
 *
 * @param source a file, a folder or a glob
 * @param byFile whether each file of a text is measured by itself; otherwise all are one row, with
 *     the tokenizer's separator between documents. Other tasks never join files.
 * @param format of texts; empty: each file by its name
 * @param field member of a JSON line, or column of a table, that holds the text
 */
public record TaskData(Path source, boolean byFile, Optional<DataFormat> format, String field) {
    /** More problems than these would only push the first ones off the screen. */
    private static final int SHOWN = 20;

    /** Files by their names, texts in their usual place. */
    public static TaskData of(Path source, boolean byFile) {
        return new TaskData(source, byFile, Optional.empty(), "text");
    }

    /**
     * Finds the files.
     *
     * @throws DataException if there are none
     */
    public List<Path> find() {
        return Corpus.find(List.of(source), format, field).files();
    }

    /**
     * Reads it for a task.
     *
     * @param context of the model
     * @throws DataException with everything that is wrong, the first few of each kind
     */
    public PreparedTask prepare(TaskRequest request, Tokenizer tokenizer, int context) {
        List<DataProblem> problems = new ArrayList<>();
        if (request.stride().isPresent() && request.stride().getAsInt() > context) {
            problems.add(
                    new DataProblem(
                            "stride",
                            "1 to %d tokens, the model's context".formatted(context),
                            "" + request.stride().getAsInt(),
                            "leave it out for windows that do not overlap"));
            find();
            throw new DataException(problems);
        }
        PreparedTask task = read(request, tokenizer, context, problems);
        if (problems.isEmpty()) {
            problems.addAll(task.emptyFiles());
        }
        int more = problems.size() - SHOWN;
        if (more > 0) {
            problems.subList(SHOWN, problems.size()).clear();
            problems.add(
                    new DataProblem(
                            source.toString(),
                            "lines as described",
                            "%d more that are not".formatted(more),
                            "repair those above first"));
        }
        if (!problems.isEmpty()) {
            throw new DataException(problems);
        }
        return task;
    }

    private PreparedTask read(
            TaskRequest request, Tokenizer tokenizer, int context, List<DataProblem> problems) {
        int stride = request.stride().orElse(context);
        if (request.task() == TaskKind.TEXT) {
            return text(request, tokenizer, context, stride);
        }
        List<Path> files = find();
        var reader = new TaskFiles(problems);
        List<TaskText> texts =
                request.protocol().read(request.task(), reader, files, tokenizer, context, stride);
        return new PreparedTask(request, files.stream().map(this::name).toList(), texts);
    }

    private PreparedTask text(TaskRequest request, Tokenizer tokenizer, int context, int stride) {
        List<String> names = new ArrayList<>();
        List<int[]> rows = new ArrayList<>();
        if (PreparedTokens.areIn(source)) {
            names.add(source.toString());
            rows.add(prepared(tokenizer));
        } else {
            Corpus all = Corpus.find(List.of(source), format, field);
            List<Corpus> parts =
                    byFile
                            ? all.files().stream()
                                    .map(file -> new Corpus(List.of(file), format, field))
                                    .toList()
                            : List.of(all);
            for (Corpus part : parts) {
                names.add(byFile ? name(part.files().getFirst()) : source.toString());
                rows.add(part.tokens(tokenizer));
            }
        }
        return new PreparedTask(request, names, TextTask.plain(rows, tokenizer, context, stride));
    }

    /** Of a file in tables: as short as it tells files apart. */
    private String name(Path file) {
        if (Files.isDirectory(source)) {
            return source.toAbsolutePath().normalize().relativize(file).toString();
        }
        return Files.exists(source) ? String.valueOf(source.getFileName()) : file.toString();
    }

    private int[] prepared(Tokenizer tokenizer) {
        PreparedTokens tokens = PreparedTokens.open(source);
        if (!tokens.fingerprint().equals(tokenizer.fingerprint())) {
            throw new DataException(
                    List.of(
                            new DataProblem(
                                    source.toString(),
                                    "tokens of the model's tokenizer, " + tokenizer.name(),
                                    "those of " + tokens.tokenizer(),
                                    "prepare the texts with that tokenizer")));
        }
        int[] row = new int[Math.toIntExact(tokens.size())];
        for (int i = 0; i < row.length; i++) {
            row[i] = tokens.get(i);
        }
        return row;
    }
}
