package dev.penstock.runtime.training;

import com.typesafe.config.ConfigUtil;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.model.family.ModelConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The shape of weights to start from: it is that of the {@code config.json} with them, where a
 * configuration says nothing of its model's.
 */
public final class ModelOfWeights {
    /** Does not change what a model is. */
    private static final Set<String> NO_SHAPE = Set.of("context", "dropout");

    private static final String TOKENIZER_FILE = "tokenizer.json";

    private ModelOfWeights() {}

    /**
     * Whether a configuration says nothing of the model but how long sequences are and how much is
     * dropped.
     */
    public static boolean isUnsaid(DraftConfig draft) {
        return NO_SHAPE.containsAll(draft.draft().writtenIn("model"));
    }

    /** Returns the {@code config.json} in a folder of weights, or beside a file of them. */
    public static Optional<Path> configOf(Path weights) {
        Path place = Files.isDirectory(weights) ? weights : weights.toAbsolutePath().getParent();
        return Optional.ofNullable(place)
                .map(folder -> folder.resolve(ModelConfig.FILE))
                .filter(Files::isReadable);
    }

    /** Returns the overrides under which a configuration has the model of this file. */
    public static List<String> settings(Path config, List<String> given) {
        List<String> settings = new ArrayList<>(given);
        settings.add("model.from=" + ConfigUtil.quoteString(config.toAbsolutePath().toString()));
        return settings;
    }

    /** What to look at where weights have a tokenizer and the configuration names none. */
    public static Optional<String> tokenizerNote(DraftConfig draft, Path config) {
        Path folder = config.toAbsolutePath().getParent();
        boolean has = folder != null && Files.exists(folder.resolve(TOKENIZER_FILE));
        return has && !draft.draft().writtenIn("data").contains("tokenizer")
                ? Optional.of(
                        "these weights have a tokenizer and data.tokenizer is not said, so it is %s; try --set data.tokenizer=%s"
                                .formatted(
                                        draft.draft().config().data().tokenizer().word(), folder))
                : Optional.empty();
    }
}
