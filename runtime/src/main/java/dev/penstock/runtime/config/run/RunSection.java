package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import java.nio.file.Path;
import java.text.Normalizer;

/**
 * Section {@code run}: which run this is and how long it lasts.
 *
 * @param name taken from the configuration's file name unless given
 * @param seed decides initial weights and sampling
 * @param steps optimizer steps
 * @param directory where run directories are made, as given: relative to the working directory
 */
public record RunSection(
        @Setting(doc = "name of the run; the configuration's file name unless given") String name,
        @Setting(is = "42", doc = "decides initial weights and the sampling of data") long seed,
        @Setting(is = "1000", range = "[1, )", doc = "optimizer steps") int steps,
        @Setting(
                        is = "runs",
                        output = true,
                        doc = "folder for run directories, relative to the working directory")
                Path directory) {

    /** The name nearest to {@code text} that can be part of a file's name. */
    public static String fileName(String text) {
        String plain =
                Normalizer.normalize(text, Normalizer.Form.NFKD)
                        .replaceAll("\\p{M}+", "") // accents
                        .replaceAll("[^A-Za-z0-9._-]+", "-")
                        .replaceFirst("^[._-]+", "")
                        .replaceFirst("[._-]+$", "");
        return plain.isEmpty() ? "run" : plain;
    }
}
