package dev.penstock.benchmarks;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/**
 * The same training steps by PyTorch in a separate process, on the device that this process has
 * just released, if {@code python3} has PyTorch.
 */
final class PyTorchPeer {
    private static final int MINUTES = 15; // it compiles first, which takes long

    private PyTorchPeer() {}

    /**
     * @param sequences the sequences of a step
     * @param stepSeconds of the median step
     * @param peakBytes of the device's memory
     */
    record Measured(int sequences, double stepSeconds, long peakBytes) {}

    /**
     * Returns PyTorch's version.
     *
     * @param device {@code cuda} or {@code cpu}
     * @throws Missing with the reason, if PyTorch is not installed or does not see the device
     */
    static String version(String device) throws Missing {
        String there = device.equals("cuda") ? "torch.cuda.is_available()" : "True";
        String[] told =
                lastLine("import torch; print(torch.__version__, %s)".formatted(there), List.of())
                        .split(" ");
        if (told.length != 2 || !told[1].equals("True")) {
            throw new Missing("python3's PyTorch sees no GPU: " + String.join(" ", told));
        }
        return told[0];
    }

    /**
     * Measures PyTorch's steps; halves the number of sequences until they fit.
     *
     * @param device {@code cuda} or {@code cpu}
     * @param bf16 whether products round their factors, as with {@code device.precision = bf16}
     * @throws Missing with the reason, if there are no figures
     */
    static Measured measure(
            String device, boolean bf16, TrainingShape shape, int sequences, int steps)
            throws Missing {
        List<String> arguments = new ArrayList<>(List.of(device, bf16 ? "bfloat16" : "float32"));
        IntStream.of(
                        shape.layers(),
                        shape.width(),
                        shape.heads(),
                        shape.keyHeads(),
                        shape.hidden(),
                        shape.context(),
                        shape.vocabulary(),
                        sequences,
                        steps)
                .forEach(number -> arguments.add("" + number));
        String line = lastLine(script(), arguments);
        try {
            String[] told = line.split(" ");
            return new Measured(
                    Integer.parseInt(told[0]),
                    Double.parseDouble(told[1]),
                    Long.parseLong(told[2]));
        } catch (NumberFormatException | ArrayIndexOutOfBoundsException e) {
            throw new Missing("expected three figures from PyTorch, got " + line);
        }
    }

    private static String script() throws Missing {
        try (InputStream text = PyTorchPeer.class.getResourceAsStream("pytorch_peer.py")) {
            return new String(Objects.requireNonNull(text).readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new Missing("cannot read PyTorch's script: " + e.getMessage());
        }
    }

    /** Returns the last line that a script prints; a script that takes too long is killed. */
    private static String lastLine(String script, List<String> arguments) throws Missing {
        List<String> command = new ArrayList<>(List.of("python3", "-c", script));
        command.addAll(arguments);
        try {
            Process python = new ProcessBuilder(command).redirectErrorStream(true).start();
            CompletableFuture.delayedExecutor(MINUTES, TimeUnit.MINUTES)
                    .execute(python::destroyForcibly);
            String said =
                    new String(python.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            String last =
                    said.lines()
                            .filter(line -> !line.isBlank())
                            .reduce((_, later) -> later)
                            .orElse("no output");
            if (python.waitFor() != 0) {
                throw new Missing("exit code %d: %s".formatted(python.exitValue(), last));
            }
            return last;
        } catch (IOException e) {
            throw new Missing("cannot start python3: " + e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new Missing("interrupted");
        }
    }

    /** The reason why there is nothing to compare with. */
    static final class Missing extends Exception {
        private static final long serialVersionUID = 1;

        Missing(String reason) {
            super(reason);
        }
    }
}
