package dev.penstock.runtime.checkpoint;

import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.family.StoredPart;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.TensorFacts;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Collects everything that keeps stored tensors from being those of a model, and reports it all at
 * once.
 */
final class ModelFit {
    static final String FIRST_MOMENT = "optimizer.m.";
    static final String SECOND_MOMENT = "optimizer.v.";
    private static final String HEAD = "lm_head.weight";
    private static final int SHOWN = 20;

    private final ModelTensors stored;
    private final List<String> problems = new ArrayList<>();

    ModelFit(ModelTensors stored) {
        this.stored = stored;
    }

    /** Compares parameters: each must exist with its shape, and no others. */
    ModelFit parameters(ModelConfig model) {
        Map<String, List<Integer>> wanted = model.parameters();
        wanted.forEach(this::compare);
        for (TensorFacts tensor : stored.tensors()) {
            String name = tensor.name();
            boolean known = wanted.containsKey(name) || name.startsWith("optimizer.");
            if (!known && !name.equals(HEAD)) {
                problems.add("%s: expected none, got %s".formatted(name, tensor.shape()));
            }
        }
        if (model.shape().tied() && stored.find(HEAD).isPresent()) {
            checkTiedHead();
        }
        return this;
    }

    /** Compares the parameters of both models that are of no head. */
    ModelFit body(ModelConfig model, ModelConfig own) {
        Map<String, List<Integer>> wanted = model.parameters();
        wanted.keySet().removeIf(model::isOfHead);
        wanted.forEach(this::compare);
        own.parameters()
                .forEach(
                        (name, shape) -> {
                            if (!wanted.containsKey(name) && !own.isOfHead(name)) {
                                problems.add("%s: expected none, got %s".formatted(name, shape));
                            }
                        });
        return this;
    }

    /**
     * Compares the tensors of a file of another family.
     *
     * @param file by bare name
     * @param headIsNew whether the file may lack what the model's head consists of
     */
    ModelFit parts(ModelConfig model, Map<String, StoredTensor> file, boolean headIsNew) {
        Map<String, StoredTensor> left = new LinkedHashMap<>(file);
        for (StoredPart part : model.family().parts(model.shape())) {
            String bare = model.family().bareName(part.name());
            StoredTensor found = left.remove(bare);
            if (found == null && headIsNew && model.family().isOfHead(bare)) {
                continue;
            }
            String got =
                    found == null
                            ? "nothing"
                            : found.isFloatingPoint()
                                    ? found.shape().toString()
                                    : found.type().toString();
            if (!got.equals(part.shape().toString())) {
                problems.add(
                        "%s (%s): expected %s, got %s"
                                .formatted(part.name(), part.parameter(), part.shape(), got));
            }
        }
        left.forEach(
                (name, tensor) -> {
                    boolean ofHead = model.family().isOfHead(name);
                    if (!ofHead && (!model.shape().tied() || !name.equals(HEAD))) {
                        problems.add("%s: expected none, got %s".formatted(name, tensor.shape()));
                    }
                });
        if (model.shape().tied() && left.containsKey(HEAD)) {
            checkTiedHead();
        }
        return this;
    }

    /** Compares both moments of every parameter that is trained. */
    ModelFit moments(ModelConfig model) {
        model.trained()
                .forEach(
                        (name, shape) -> {
                            compare(FIRST_MOMENT + name, shape);
                            compare(SECOND_MOMENT + name, shape);
                        });
        return this;
    }

    void check() {
        if (problems.isEmpty()) {
            return;
        }
        List<String> shown = problems.subList(0, Math.min(SHOWN, problems.size()));
        String more =
                problems.size() > SHOWN ? "%n  and %d more".formatted(problems.size() - SHOWN) : "";
        throw new StoredFileException(
                stored.path(),
                "does not match the model of this run:\n  " + String.join("\n  ", shown) + more);
    }

    private void compare(String name, List<Integer> shape) {
        Optional<? extends TensorFacts> found = stored.find(name);
        if (found.isEmpty()) {
            problems.add("%s: expected %s, got nothing".formatted(name, shape));
        } else if (!found.get().shape().equals(shape)) {
            problems.add("%s: expected %s, got %s".formatted(name, shape, found.get().shape()));
        } else if (!found.get().isFloatingPoint()) {
            problems.add("%s: expected real numbers, got %s".formatted(name, found.get().type()));
        }
    }

    /** Some files repeat the embedding as the head; one that differs belongs to another model. */
    private void checkTiedHead() {
        try (Arena arena = Arena.ofConfined()) {
            Optional<StoredTensor> head = stored.read(HEAD, arena);
            Optional<StoredTensor> embedding = stored.read("wte.weight", arena);
            if (head.isPresent()
                    && embedding.isPresent()
                    && head.get().data().mismatch(embedding.get().data()) >= 0) {
                problems.add(
                        "%s: expected none or a copy of wte.weight, got a different %s; try model.tied = false"
                                .formatted(HEAD, head.get().shape()));
            }
        }
    }
}
