package dev.penstock;

import com.typesafe.config.ConfigUtil;
import dev.penstock.runtime.data.GivenTokens;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** A program's tokens for those who read data. */
record OwnTokens(TokenSource source, String identity, long size) implements GivenTokens {
    /** What a configuration says of such tokens: a place that exists, and that nobody reads. */
    static final List<String> SETTINGS =
            List.of(
                    "data.source="
                            + ConfigUtil.quoteString(
                                    Path.of("").toAbsolutePath().getRoot().toString()),
                    "data.format=given");

    /** The same over what a run says of text: such tokens have no documents and no answers. */
    static final List<String> ALONE =
            Stream.concat(SETTINGS.stream(), Stream.of("data.packing=none", "data.loss=all"))
                    .toList();

    /** They are asked once for what must not change while they are used. */
    static OwnTokens of(TokenSource source) {
        return new OwnTokens(source, identity(source), source.size());
    }

    private static String identity(TokenSource source) {
        String identity = source.identity();
        return identity == null ? "" : identity.strip();
    }

    @Override
    public void read(long first, int[] target, int offset, int count) {
        source.read(first, target, offset, count);
    }
}
