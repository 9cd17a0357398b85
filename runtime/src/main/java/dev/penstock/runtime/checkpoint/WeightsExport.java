package dev.penstock.runtime.checkpoint;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.safetensors.OutOfRangeException;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorSource;
import dev.penstock.runtime.weights.WeightsFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Writes tensors as a Hugging Face folder has them, whatever the model: one safetensors file, or
 * several with an index, and texts such as {@code config.json} beside. Tensors are read, converted
 * and written piece by piece, read back and compared; then everything gets its name. An error
 * before that leaves what was there. Where files are being replaced, a mark beside them ({@link
 * WeightsFiles#UNFINISHED}) keeps readers from a folder with files of two models, and what names
 * the weights for other programs is removed first and comes last.
 */
public final class WeightsExport {
    private static final String ENDING = ".safetensors";
    private static final int CHUNK_BYTES = 1 << 20;

    /** Begins the lines of a mark that name what an export makes where nothing was before. */
    private static final String MADE = "made: ";

    private static final Map<String, String> METADATA = Map.of("format", "pt");
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path weights;
    private final Form form;
    private final Runnable sourceIsWhole;
    private final List<Path> partials = new ArrayList<>();
    private boolean replacing;
    private @Nullable MadeFolders folders;

    private WeightsExport(Path weights, Form form, Runnable sourceIsWhole) {
        this.weights = weights;
        this.form = form;
        this.sourceIsWhole = sourceIsWhole;
    }

    /**
     * How weights are written.
     *
     * @param type of all elements, rounded as {@link TensorSource#as} says; empty: as they are
     *     stored
     * @param partBytes most bytes of tensors in one file; a larger tensor has a file of its own
     */
    public record Form(Optional<StoredType> type, long partBytes) {
        /** One file, nothing converted. */
        public static final Form AS_STORED = new Form(Optional.empty(), Long.MAX_VALUE);

        public Form {
            if (partBytes < 1) {
                throw new IllegalArgumentException(
                        "expected parts of at least 1 byte, got " + partBytes);
            }
        }
    }

    /**
     * Writes weights; files of the same names are replaced, and other files that held the same
     * weights in other parts are removed.
     *
     * @param weights the file if it is one, {@code FOLDER/model.safetensors}; several are called
     *     {@code model-00001-of-00002.safetensors} and so on, and the index {@code
     *     model.safetensors.index.json}; the folder is created if it does not exist
     * @param tensors with the names that the files get
     * @param texts more files of the folder, by name
     * @param sourceIsWhole fails if a file has changed from which the tensors are read
     * @return the files with tensors
     * @throws StoredFileException if anything cannot be written or a value does not fit the type
     */
    static List<Path> write(
            Path weights,
            List<? extends TensorSource> tensors,
            Map<String, String> texts,
            Form form,
            Runnable sourceIsWhole) {
        return new WeightsExport(weights, form, sourceIsWhole).write(tensors, texts);
    }

    /**
     * Returns the files that {@link #write} would replace or remove: weights whole or in parts,
     * their index, and texts that say something else.
     */
    public static List<Path> inTheWay(Path weights, Map<String, String> texts) {
        var export = new WeightsExport(weights, Form.AS_STORED, () -> {});
        List<Path> found = new ArrayList<>();
        Set<Path> left = leftBehind(weights);
        Stream.of(weights, export.indexFile(), export.mark())
                .filter(Files::exists)
                .forEach(found::add);
        try {
            if (Files.isDirectory(DurableFiles.folderOf(weights))) {
                found.addAll(export.partsThere());
            }
            for (Map.Entry<String, String> text : texts.entrySet()) {
                Path file = weights.resolveSibling(text.getKey());
                byte[] wanted = text.getValue().getBytes(StandardCharsets.UTF_8);
                if (Files.exists(file)
                        && (Files.size(file) != wanted.length
                                || !Arrays.equals(Files.readAllBytes(file), wanted))) {
                    found.add(file);
                }
            }
        } catch (IOException e) {
            throw StoredFileException.of(weights, "look for files beside it", e);
        }
        found.removeIf(left::contains);
        return found;
    }

    /**
     * Returns what an export left here that was killed, with its mark, if there was nothing of it
     * before: the same export may replace it.
     */
    public static Set<Path> leftBehind(Path weights) {
        Path mark = new WeightsExport(weights, Form.AS_STORED, () -> {}).mark();
        try {
            Set<Path> made =
                    Files.readAllLines(mark).stream()
                            .filter(line -> line.startsWith(MADE))
                            .map(line -> line.substring(MADE.length()))
                            .filter(name -> name.indexOf('/') < 0)
                            .map(weights::resolveSibling)
                            .collect(Collectors.toCollection(HashSet::new));
            if (!made.isEmpty()) {
                made.add(mark);
            }
            return made;
        } catch (NoSuchFileException e) {
            return Set.of();
        } catch (IOException e) {
            throw StoredFileException.of(mark, "read what an export left", e);
        }
    }

    private List<Path> write(List<? extends TensorSource> tensors, Map<String, String> texts) {
        List<TensorSource> wanted =
                tensors.stream().<TensorSource>map(t -> form.type().map(t::as).orElse(t)).toList();
        long bytes = wanted.stream().mapToLong(TensorSource::bytes).sum();
        try {
            folders = MadeFolders.of(DurableFiles.folderOf(weights));
            DiskSpace.require(weights, bytes);
            Map<Path, List<TensorSource>> files = parts(wanted);
            for (Map.Entry<Path, List<TensorSource>> file : files.entrySet()) {
                writeFile(partial(file.getKey()), file.getValue());
            }
            sourceIsWhole.run();
            publish(files, texts, bytes);
            return List.copyOf(files.keySet());
        } catch (OutOfRangeException e) {
            throw failed(new StoredFileException(weights, String.valueOf(e.getMessage()), e));
        } catch (IOException e) {
            throw failed(DiskSpace.failure(weights, bytes, e));
        } catch (StoredFileException e) {
            throw failed(e.getCause() == null ? e : DiskSpace.failure(weights, bytes, e));
        } catch (InternalError e) { // a fault in memory into which a file is mapped
            throw failed(new StoredFileException(weights, "cannot read the tensors for it", e));
        }
    }

    private Map<Path, List<TensorSource>> parts(List<TensorSource> tensors) {
        List<List<TensorSource>> parts = new ArrayList<>();
        long room = 0;
        for (TensorSource tensor : tensors) {
            if (parts.isEmpty() || tensor.bytes() > room) {
                parts.add(new ArrayList<>());
                room = form.partBytes();
            }
            parts.getLast().add(tensor);
            room -= Math.min(room, tensor.bytes());
        }
        Map<Path, List<TensorSource>> files = new LinkedHashMap<>();
        for (int i = 0; i < parts.size(); i++) {
            Path file =
                    parts.size() == 1
                            ? weights
                            : weights.resolveSibling(
                                    "%s-%05d-of-%05d%s"
                                            .formatted(stem(), i + 1, parts.size(), ENDING));
            files.put(file, parts.get(i));
        }
        return files;
    }

    /** The name without its ending. */
    private String stem() {
        String name = weights.getFileName().toString();
        return name.endsWith(ENDING) ? name.substring(0, name.length() - ENDING.length()) : name;
    }

    private Path partial(Path file) throws IOException {
        Path partial = DurableFiles.aside(file);
        Files.deleteIfExists(partial); // left by a crash
        partials.add(partial);
        return partial;
    }

    private static void writeFile(Path file, List<TensorSource> tensors) {
        SafetensorsWriter.write(file, METADATA, tensors);
        try (SafetensorsFile written = SafetensorsFile.open(file);
                Arena arena = Arena.ofConfined()) {
            MemorySegment buffer = arena.allocate(CHUNK_BYTES, Long.BYTES);
            for (TensorSource tensor : tensors) {
                if (!equal(written.tensor(tensor.name()), tensor, buffer)) {
                    throw new StoredFileException(
                            file,
                            tensor.name() + " was read back with different bits; try another disk");
                }
            }
        }
    }

    private static boolean equal(StoredTensor written, TensorSource source, MemorySegment buffer) {
        try (TensorSource.Reading reading = source.open()) {
            for (long at = 0; at < source.bytes(); ) {
                int bytes = (int) Math.min(CHUNK_BYTES, source.bytes() - at);
                MemorySegment expected = reading.next(bytes, buffer);
                if (written.data().asSlice(at, bytes).mismatch(expected) >= 0) {
                    return false;
                }
                at += bytes;
            }
        }
        return true;
    }

    /** Every break from here on leaves the mark. */
    private void publish(Map<Path, List<TensorSource>> files, Map<String, String> texts, long bytes)
            throws IOException {
        Path index = indexFile();
        boolean single = files.size() == 1;
        Map<String, String> all = new LinkedHashMap<>(texts);
        if (!single) {
            all.put(index.getFileName().toString(), index(files, bytes));
        }
        String made = made(files.keySet(), all);
        TextsAside aside = TextsAside.write(DurableFiles.folderOf(weights), all);
        try {
            replacing = true;
            DurableFiles.write(
                    mark(), "These files are being replaced by those of an export.\n" + made);
            Files.deleteIfExists(index);
            Files.deleteIfExists(weights);
            if (!single) {
                moveAll(files.keySet());
            }
            aside.publish();
            if (single) {
                moveAll(files.keySet());
            }
            removeOtherParts(files);
            Files.delete(mark());
            replacing = false;
        } finally {
            aside.discard();
        }
    }

    /** The lines of the mark that name the files; none where some of them were there before. */
    private String made(Collection<Path> files, Map<String, String> texts) {
        if (!inTheWay(weights, texts).isEmpty()) {
            return "";
        }
        return Stream.concat(files.stream().map(Path::getFileName), texts.keySet().stream())
                .map(name -> MADE + name + "\n")
                .collect(Collectors.joining());
    }

    private static void moveAll(Collection<Path> files) throws IOException {
        for (Path file : files) {
            DurableFiles.move(DurableFiles.aside(file), file);
        }
    }

    private void removeOtherParts(Map<Path, List<TensorSource>> files) throws IOException {
        for (Path file : partsThere()) {
            if (!files.containsKey(file)) {
                Files.delete(file);
            }
        }
    }

    private List<Path> partsThere() throws IOException {
        Pattern part = Pattern.compile(Pattern.quote(stem()) + "-\\d{5}-of-\\d{5}\\.safetensors");
        try (Stream<Path> there = Files.list(DurableFiles.folderOf(weights))) {
            return there.filter(file -> part.matcher(file.getFileName().toString()).matches())
                    .map(file -> weights.resolveSibling(file.getFileName()))
                    .sorted()
                    .toList();
        }
    }

    private Path indexFile() {
        return weights.resolveSibling(weights.getFileName() + WeightsFiles.INDEX);
    }

    private Path mark() {
        return weights.resolveSibling(weights.getFileName() + WeightsFiles.UNFINISHED);
    }

    private static String index(Map<Path, List<TensorSource>> files, long bytes) {
        ObjectNode root = JSON.createObjectNode();
        root.putObject("metadata").put("total_size", bytes);
        ObjectNode map = root.putObject("weight_map");
        files.forEach(
                (file, tensors) ->
                        tensors.forEach(
                                tensor -> map.put(tensor.name(), file.getFileName().toString())));
        return root.toPrettyString() + "\n";
    }

    /**
     * Removes partial files, which are useless: on a full disk their space is needed. Says first
     * what is wrong with the source, if anything is: all else may follow from it.
     */
    private StoredFileException failed(StoredFileException failure) {
        StoredFileException reason = failure;
        try {
            sourceIsWhole.run();
        } catch (StoredFileException e) {
            e.addSuppressed(failure);
            reason = e;
        }
        if (replacing) {
            reason =
                    new StoredFileException(
                            weights,
                            "cannot replace the files here, which are now of no use: %s; run the"
                                            .formatted(reason.getMessage())
                                    + " same export again with --force",
                            failure);
        }
        for (Path partial : partials) {
            try {
                Files.deleteIfExists(partial);
            } catch (IOException e) {
                reason.addSuppressed(e);
            }
        }
        if (folders != null) {
            folders.remove();
        }
        return reason;
    }
}
