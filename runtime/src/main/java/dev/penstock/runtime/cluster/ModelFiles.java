package dev.penstock.runtime.cluster;

import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.safetensors.Sha256;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;

/** The files of a model, by which nodes see whether they have the same. */
final class ModelFiles {
    private static final int PROBES = 64;
    private static final int PROBE_BYTES = 4_096;

    private ModelFiles() {}

    /**
     * Returns a hash over names and sizes of its files and over their contents, of large ones at
     * evenly spaced places: another checkpoint, a copy that was cut short or one that is still
     * being written differs, at no cost for a model that takes minutes to read.
     */
    static String fingerprint(TrainedModel model) {
        Path place = model.tensors().path();
        var text = new StringBuilder();
        try {
            for (Path file : files(place)) {
                text.append(file.getFileName()).append(' ').append(probes(file)).append('\n');
            }
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read the model in " + place, e);
        }
        return Sha256.of(text + model.config().toString());
    }

    private static List<Path> files(Path place) throws IOException {
        if (!Files.isDirectory(place)) {
            return List.of(place);
        }
        try (Stream<Path> entries = Files.list(place)) {
            return entries.filter(Files::isRegularFile).sorted().toList();
        }
    }

    private static String probes(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file)) {
            long bytes = channel.size();
            var text = new StringBuilder().append(bytes);
            ByteBuffer probe = ByteBuffer.allocate(PROBE_BYTES);
            long apart = Math.max(PROBE_BYTES, bytes / PROBES);
            for (long at = 0; at < bytes; at += apart) {
                probe.clear();
                int read = channel.read(probe, at);
                text.append(HexFormat.of().formatHex(probe.array(), 0, Math.max(0, read)));
            }
            return Sha256.of(text.toString());
        }
    }
}
