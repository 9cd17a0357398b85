package dev.penstock.runtime.chaos;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;

/**
 * What chaos trains where it is told nothing else: three stages, small enough to be killed often.
 */
public final class OwnModel {
    private static final String CONFIGURATION =
            """
            # what penstock chaos trains unless it is given a configuration
            run { name = chaos, steps = 160 }
            model { context = 64, width = 64, layers = 3, heads = 2 }
            data { source = "chaos.txt", tokenizer = bytes }
            batch { sequences = 8, micro-batches = 8 }
            pipeline { stages = 3, processes = per-stage, ranks-per-node = 3 }
            optimizer { learning-rate = 2e-3, warmup-steps = 10 }
            checkpoint { every = 10 }
            timeouts { lease = 2 s }
            report { sample = false }
            """;

    private static final String LETTERS = "etaoinshrdlu";
    private static final int WORDS = 20_000;
    private static final int LONGEST_WORD = 7;

    private OwnModel() {}

    /** Writes the configuration and its text into a folder, and returns the configuration. */
    public static Path write(Path folder) {
        try {
            Files.writeString(folder.resolve("chaos.txt"), text());
            return Files.writeString(folder.resolve("chaos.conf"), CONFIGURATION);
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "cannot write into %s: %s".formatted(folder, e.getMessage()), e);
        }
    }

    private static String text() {
        var random = new Random(1);
        var text = new StringBuilder();
        for (int word = 0; word < WORDS; word++) {
            for (int letter = random.nextInt(LONGEST_WORD); letter >= 0; letter--) {
                text.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
            }
            text.append(' ');
        }
        return text.toString();
    }
}
