package dev.penstock.runtime.training;

import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.config.run.LayoutChanges;
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
public final class ModelOfRun {
    private static final String FROM = "model.from";

    private ModelOfRun() {}

    /**
     * Returns the overrides under which a configuration has the model of the run that goes on;
     * those given, if there is no such run.
     *
     * @param place of the run; empty: the latest of its name
     */
    public static List<String> settings(
            DraftConfig draft, Optional<Path> place, List<String> given) {
        RunSection run = draft.draft().config().run();
        Optional<RunDirectory> directory =
                place.map(RunDirectory::new)
                        .or(() -> RunDirectory.latestUnder(run.directory(), run.name()));
        Optional<List<String>> model =
                directory
                        .map(RunDirectory::resolvedConfiguration)
                        .filter(Files::isReadable)
                        .flatMap(LayoutChanges::modelOf);
        if (model.isEmpty()) {
            return given;
        }
        List<String> settings = new ArrayList<>(model.get());
        settings.addAll(given);
        settings.add(FROM + "=none");
        return settings;
    }
}
