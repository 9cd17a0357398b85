package dev.penstock.runtime.cli.train;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigException;
import com.typesafe.config.ConfigFactory;
import com.typesafe.config.ConfigRenderOptions;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.config.run.RunSection;
import dev.penstock.runtime.metrics.RunDirectory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * What a run says of its model: all that the folder said that {@code model.from} named, which may
 * be gone when the run goes on.
 */
final class ModelOfRun {
    private static final String SECTION = "model";
    private static final String FROM = "model.from";

    private ModelOfRun() {}

    /** Returns whether nothing is wrong with the model but that its folder is not there. */
    static boolean isMissing(DraftConfig draft) {
        return !draft.sound(FROM) && draft.sound("model.width", "model.family");
    }

    /**
     * Returns the overrides under which a configuration has the model of the run that goes on;
     * those given, if there is no such run.
     *
     * @param place of the run; empty: the latest of its name
     */
    static List<String> settings(DraftConfig draft, Optional<Path> place, List<String> given) {
        RunSection run = draft.draft().config().run();
        Optional<RunDirectory> directory =
                place.map(RunDirectory::new)
                        .or(() -> RunDirectory.latestUnder(run.directory(), run.name()));
        Optional<Config> model =
                directory
                        .map(RunDirectory::resolvedConfiguration)
                        .filter(Files::isReadable)
                        .flatMap(ModelOfRun::model);
        if (model.isEmpty()) {
            return given;
        }
        List<String> settings = new ArrayList<>();
        model.get()
                .entrySet()
                .forEach(
                        key ->
                                settings.add(
                                        "%s.%s=%s"
                                                .formatted(
                                                        SECTION,
                                                        key.getKey(),
                                                        key.getValue()
                                                                .render(
                                                                        ConfigRenderOptions
                                                                                .concise()))));
        settings.addAll(given);
        settings.add(FROM + "=none");
        return settings;
    }

    /** Returns the section without how long sequences are, which may change. */
    private static Optional<Config> model(Path resolved) {
        try {
            Config config = ConfigFactory.parseFile(resolved.toFile());
            return config.hasPath(SECTION)
                    ? Optional.of(config.getConfig(SECTION).withoutPath("context"))
                    : Optional.empty();
        } catch (ConfigException e) {
            return Optional.empty(); // told of when the run goes on
        }
    }
}
