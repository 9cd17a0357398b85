package dev.penstock.runtime.weights;

import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredTensors;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;

/** A model in several files with an index. */
final class ShardedWeights implements StoredTensors {
    private static final int SHOWN = 20;

    private final Path index;
    private final List<StoredTensors> files;
    private final Map<String, StoredTensor> tensors;

    private ShardedWeights(
            Path index, List<StoredTensors> files, Map<String, StoredTensor> tensors) {
        this.index = index;
        this.files = List.copyOf(files);
        this.tensors = Collections.unmodifiableMap(tensors);
    }

    /**
     * Opens all files that an index names and compares them with it.
     *
     * @param opener opens one of them
     * @throws StoredFileException with every file that is missing or damaged, and every tensor that
     *     is in no file, in two, or not in the index
     */
    static ShardedWeights open(Path index, Function<Path, StoredTensors> opener) {
        WeightsIndex table = WeightsIndex.read(index);
        List<String> problems = new ArrayList<>(table.problems());
        Map<String, StoredTensors> files = new LinkedHashMap<>();
        for (String name : new LinkedHashSet<>(table.files().values())) {
            try {
                files.put(name, opener.apply(index.resolveSibling(name)));
            } catch (StoredFileException e) {
                problems.add(String.valueOf(e.getMessage()));
            }
        }
        Map<String, StoredTensor> tensors = new LinkedHashMap<>();
        table.files()
                .forEach(
                        (tensor, name) -> {
                            StoredTensors file = files.get(name);
                            if (file != null) {
                                file.find(tensor)
                                        .ifPresentOrElse(
                                                found -> tensors.put(tensor, found),
                                                () ->
                                                        problems.add(
                                                                "%s: expected in %s, which does not have it"
                                                                        .formatted(tensor, name)));
                            }
                        });
        files.forEach((name, file) -> problems.addAll(strays(name, file, table)));
        if (problems.isEmpty()) {
            return new ShardedWeights(index, List.copyOf(files.values()), tensors);
        }
        files.values().forEach(StoredTensors::close);
        throw new StoredFileException(index, "the files do not fit the index:" + list(problems));
    }

    /** Tensors of a file that the index does not look for there. */
    private static List<String> strays(String name, StoredTensors file, WeightsIndex table) {
        Set<String> problems = new LinkedHashSet<>();
        for (StoredTensor tensor : file.tensors()) {
            String named = table.files().get(tensor.name());
            if (named == null) {
                problems.add("%s: in %s, but not in the index".formatted(tensor.name(), name));
            } else if (!named.equals(name)) {
                problems.add(
                        "%s: in %s, but the index names %s".formatted(tensor.name(), name, named));
            }
        }
        return List.copyOf(problems);
    }

    private static String list(List<String> problems) {
        List<String> shown = problems.subList(0, Math.min(SHOWN, problems.size()));
        String more =
                problems.size() > SHOWN ? "\n  and %d more".formatted(problems.size() - SHOWN) : "";
        return "\n  " + String.join("\n  ", shown) + more;
    }

    @Override
    public Path path() {
        return index;
    }

    @Override
    public Collection<StoredTensor> tensors() {
        return tensors.values();
    }

    @Override
    public Optional<StoredTensor> find(String name) {
        return Optional.ofNullable(tensors.get(name));
    }

    @Override
    public void requireWhole() {
        files.forEach(StoredTensors::requireWhole);
    }

    @Override
    public void close() {
        files.forEach(StoredTensors::close);
    }
}
