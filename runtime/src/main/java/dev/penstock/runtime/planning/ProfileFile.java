package dev.penstock.runtime.planning;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.FileCause;
import dev.penstock.schedules.simulate.InvalidCostsException;
import dev.penstock.schedules.simulate.ProfileCosts;
import dev.penstock.schedules.simulate.ProfileText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Reads the times that a run left behind. */
public final class ProfileFile {
    private static final String NAME = "profile.txt";

    private ProfileFile() {}

    /**
     * Reads the costs that a run measured.
     *
     * @param path of the file, or of its run's directory
     * @throws BadInputException with all problems of the file, or if its times are those of no
     *     length of a sequence
     */
    public static ProfileCosts read(Path path) {
        Path file = Files.isDirectory(path) ? path.resolve(NAME) : path;
        try {
            ProfileCosts costs = ProfileText.parse(Files.readString(file));
            if (costs.mixedLengths()) {
                throw new BadInputException(
                        "%s: expected the times of sequences of one length, got means over several (data.packing = lengths); take a run with data.packing = padded: what lengths save follows from its times"
                                .formatted(file));
            }
            return costs;
        } catch (IOException e) {
            throw new BadInputException(
                    "cannot read the profile of a run, %s: %s; try the directory of a finished run"
                            .formatted(file, FileCause.of(e)));
        } catch (InvalidCostsException e) {
            throw new BadInputException(
                    e.problems().stream()
                            .map(problem -> "\n  %s, %s".formatted(file, problem))
                            .reduce(file + " is not a profile", String::concat));
        }
    }
}
