package dev.penstock.runtime.config.run;

import com.typesafe.config.ConfigObject;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.ConfigText;
import dev.penstock.runtime.config.reading.Places;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.reading.Problems;
import java.nio.file.Path;
import java.util.List;

/** A file of sections (HOCON) while it is read: what it says, and what is wrong with it. */
public record SectionFile(Places places, Problems problems, SectionReader sections) {
    public static SectionFile of(Path file) {
        var places =
                new Places(
                        file.toAbsolutePath().normalize(),
                        Path.of("").toAbsolutePath().normalize());
        var problems = new Problems(places);
        return new SectionFile(places, problems, new SectionReader(problems, places));
    }

    /**
     * What is written there.
     *
     * @param overrides {@code key=value}, later ones win over earlier ones and over the file
     * @throws ConfigException if it cannot be read as HOCON
     */
    public ConfigObject read(List<String> overrides) {
        var text = new ConfigText(places.mainFile(), problems);
        ConfigObject written = text.read(overrides);
        text.reportUnresolvedElsewhere();
        stopIfWrong();
        return written;
    }

    /**
     * Goes on if nothing was wrong so far.
     *
     * @throws ConfigException with all problems at once
     */
    public void stopIfWrong() {
        List<Problem> found = problems.sorted();
        if (!found.isEmpty()) {
            throw new ConfigException(found);
        }
    }
}
