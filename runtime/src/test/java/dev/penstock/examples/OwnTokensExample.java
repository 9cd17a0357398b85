package dev.penstock.examples;

import dev.penstock.Penstock;
import dev.penstock.TokenSource;
import dev.penstock.TrainingEnd;
import java.nio.file.Path;

/** Trains on tokens that no file has. */
final class OwnTokensExample {
    private OwnTokensExample() {}

    static TrainingEnd run(Path runDirectory) {
        // @start region="example"
        TokenSource sums =
                new TokenSource() {
                    @Override
                    public String identity() {
                        return "last digits of triangular numbers, version 1";
                    }

                    @Override
                    public long size() {
                        return 100_000;
                    }

                    @Override
                    public void read(long first, int[] target, int offset, int count) {
                        for (int i = 0; i < count; i++) {
                            long place = first + i;
                            target[offset + i] = (int) (place * (place + 1) / 2 % 10);
                        }
                    }
                };
        TrainingEnd end =
                Penstock.ofText(
                                """
                                run.steps = 3
                                model { context = 16, width = 32, layers = 1, heads = 2, vocabulary = 10 }
                                """)
                        .withTokens(sums)
                        .in(runDirectory)
                        .train();
        // @end
        return end;
    }
}
