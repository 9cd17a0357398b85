package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.NearWord;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/** What was probably meant by a word that nobody knows. */
public final class Suggestion {
    private Suggestion() {}

    /** The known word that is nearest, if it is near enough to be a slip of the pen. */
    public static Optional<String> among(Collection<String> known, String word) {
        return NearWord.among(known, word);
    }

    /** A section's own keys come before those of its parts. */
    private static Comparator<String> shallowest() {
        return Comparator.comparingLong(path -> path.chars().filter(c -> c == '.').count());
    }

    /**
     * The known key or section that was probably meant: a slip in its name, or its name in another
     * section. A word that stands in no section is rather a section's name than a key's.
     */
    static Optional<String> forKey(String path) {
        Optional<String> section = among(Keys.bySection().keySet(), path);
        if (path.indexOf('.') < 0 && section.isPresent()) {
            return section;
        }
        List<String> paths = Keys.all().stream().map(Key::path).toList();
        String name = path.substring(path.lastIndexOf('.') + 1);
        return among(paths, path)
                .or(
                        () ->
                                among(Keys.all().stream().map(Key::name).toList(), name)
                                        .flatMap(
                                                nearest ->
                                                        paths.stream()
                                                                .filter(
                                                                        p ->
                                                                                p.endsWith(
                                                                                        "."
                                                                                                + nearest))
                                                                .min(shallowest())))
                .or(() -> among(List.of(FaultEntries.NAME), path))
                .or(() -> section);
    }
}
