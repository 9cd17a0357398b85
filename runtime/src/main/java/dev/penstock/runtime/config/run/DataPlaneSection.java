package dev.penstock.runtime.config.run;

import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.actors.dataplane.emulated.EmulatedLink;
import dev.penstock.actors.dataplane.emulated.EmulatedLinks;
import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.TopK;
import dev.penstock.cuda.device.WireCodec;
import dev.penstock.runtime.config.links.Bandwidth;
import dev.penstock.runtime.config.links.FrameLoss;
import dev.penstock.runtime.config.links.LinkEntry;
import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.Setting;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * Section {@code data-plane}: how tensors travel between stages.
 *
 * @param termLength a third of a channel's log buffer, a power of two
 * @param mtu bytes of one frame of the log, a multiple of 32
 * @param inFlight tensors that may be on their way per channel; empty: as many as the schedule
 *     needs
 * @param transport shared memory, UDP, or each where it fits
 * @param host name or address that UDP endpoints listen on; empty: what the nodes of a cluster say,
 *     loopback elsewhere
 * @param port that it listens on; 0: any
 * @param advertisedHost what other hosts reach it by; empty: {@code host}
 * @param udpMtu bytes of a datagram; empty: as long as the network surely carries in one piece
 * @param udpTermLength as termLength, over UDP
 * @param receiverWindow bytes that a sender may have under way over UDP
 * @param socketBuffer bytes wanted of the system for each UDP socket, both ways
 * @param insecure allows a local run to listen where other machines reach it
 * @param mediaDriver directory of a media driver that is already running; empty: the run starts its
 *     own
 * @param deviceCopies whether boundary tensors may go from device to device, past all of this
 * @param emulateBandwidth what emulated links carry; empty: what the real ones do
 * @param emulateLatency that emulated links add
 * @param emulateLoss share of the frames that emulated links lose and send again
 * @param emulateBetween ranks by site, between which links are emulated; empty: between all ranks
 * @param emulateLinks links that differ from these
 * @param emulateSeed decides which frames are lost
 * @param codec form in which activations travel from rank to rank; empty: not decided yet, and
 *     until then as they are
 * @param gradientCodec form of their gradients; empty: the same
 * @param codecFromStage links between stages before this one carry tensors as they are
 * @param topK share of each row's elements that {@link Codec#TOP_K} sends
 * @param errorFeedback whether what coded gradients lose is added to those of the next step
 * @param deltaRows rows of the data, from the first on, of which activations travel as deltas from
 *     those of their last visit
 */
public record DataPlaneSection(
        @Setting(
                        is = "8 MiB",
                        range = "[64 KiB, 1 GiB]",
                        doc = "a third of a channel's log buffer, a power of two")
                Bytes termLength,
        @Setting(is = "65504", range = "[256, 65504]", doc = "bytes of one frame, 32 by 32")
                int mtu,
        @Setting(
                        is = "auto",
                        word = "auto",
                        range = "[1, )",
                        doc = "tensors on their way per channel; auto: what the schedule needs")
                Optional<Integer> inFlight,
        @Setting(is = "adaptive", doc = "how the receiving thread and the media driver wait")
                Poller poller,
        @Setting(
                        is = "false",
                        doc = "check frames in shared memory by CRC-32C; over UDP all are checked")
                boolean crc,
        @Setting(is = "auto", doc = "shared memory, UDP, or auto: shared memory within a host")
                Transport transport,
        @Setting(
                        is = "auto",
                        word = "auto",
                        doc =
                                "name or address to listen on for UDP; auto: each node's"
                                        + " cluster.data-host, 127.0.0.1 without a cluster")
                Optional<String> host,
        @Setting(is = "0", range = "[0, 65535]", doc = "its port; 0: any free one") int port,
        @Setting(
                        is = "auto",
                        word = "auto",
                        doc = "what other hosts reach this one by; auto: as the host")
                Optional<String> advertisedHost,
        @Setting(
                        is = "auto",
                        word = "auto",
                        range = "[512, 65504]",
                        doc =
                                "bytes of a datagram, 32 by 32; auto: 1408 as Ethernet carries,"
                                        + " 65504 on loopback")
                Optional<Integer> udpMtu,
        @Setting(
                        is = "8 MiB",
                        range = "[64 KiB, 1 GiB]",
                        doc = "a third of a channel's log buffer over UDP, a power of two")
                Bytes udpTermLength,
        @Setting(
                        is = "2 MiB",
                        range = "[4 KiB, 512 MiB]",
                        doc = "bytes under way to a receiver over UDP: bandwidth times round trip")
                Bytes receiverWindow,
        @Setting(
                        is = "2 MiB",
                        range = "[4 KiB, 512 MiB]",
                        doc = "buffer of a UDP socket, as far as net.core.rmem_max allows")
                Bytes socketBuffer,
        @Setting(
                        is = "false",
                        doc =
                                "listen without a key where other machines can reach it; no"
                                        + " cluster's run")
                boolean insecure,
        @Setting(
                        is = "own",
                        word = "own",
                        doc = "directory of a running media driver; own: the run starts one")
                Optional<Path> mediaDriver,
        @Setting(
                        is = "true",
                        doc =
                                "GPUs of one process that see each other's memory hand tensors over"
                                        + " without the host")
                boolean deviceCopies,
        @Setting(
                        name = "emulate.bandwidth",
                        is = "real",
                        word = "real",
                        range = "[1 kbit/s, )",
                        doc =
                                "for trying out: what a link from rank to rank carries, such as 100"
                                        + " Mbit/s; real: no less than it does")
                Optional<Bandwidth> emulateBandwidth,
        @Setting(
                        name = "emulate.latency",
                        is = "0 s",
                        range = "[0 s, 10 s]",
                        doc = "for trying out: how long a tensor is under way besides")
                Duration emulateLatency,
        @Setting(
                        name = "emulate.loss",
                        is = "0 %",
                        range = "[0 %, 50 %]",
                        doc =
                                "for trying out: share of the frames that are lost and go once more"
                                        + " a round trip later")
                FrameLoss emulateLoss,
        @Setting(
                        name = "emulate.between",
                        is = "all",
                        word = "all",
                        range = "[0, )",
                        doc =
                                "ranks by site, such as [[0, 1], [2, 3]]: links within a site are as"
                                        + " they are; all: each rank is a site")
                Optional<List<List<Integer>>> emulateBetween,
        @Setting(
                        name = "emulate.links",
                        is = "[]",
                        doc = "links that differ, such as [{ from = 0, to = 1, latency = 80 ms }]")
                List<LinkEntry> emulateLinks,
        @Setting(name = "emulate.seed", is = "1", doc = "decides which frames are lost")
                long emulateSeed,
        @Setting(
                        is = "none",
                        word = "auto",
                        doc =
                                "form in which activations and their gradients travel from rank to"
                                        + " rank: as they are, 16-bit floats, integers of 8 or 4"
                                        + " bits with a scale per token, or only each token's"
                                        + " largest elements; auto: what makes the simulated step"
                                        + " fastest, none, fp16 or int8")
                Optional<Codec> codec,
        @Setting(is = "auto", word = "auto", doc = "the same for gradients; auto: as codec")
                Optional<Codec> gradientCodec,
        @Setting(
                        is = "0",
                        range = "[0, )",
                        doc = "links between stages before this one carry tensors as they are")
                int codecFromStage,
        @Setting(
                        is = "0.1",
                        range = "(0, 1]",
                        doc = "share of a token's elements that codec top-k sends")
                double topK,
        @Setting(
                        is = "false",
                        doc =
                                "add what the encoding of a gradient loses to the gradient of the"
                                        + " next step at its place")
                boolean errorFeedback,
        @Setting(
                        is = "0",
                        range = "[0, )",
                        doc =
                                "rows of the data, from the first on, of which coded activations"
                                        + " travel as deltas from those of their last visit, which"
                                        + " both ends of a link keep; 0: none")
                int deltaRows) {

    private static final double USUAL_SHARE = 0.1;

    public DataPlaneSection {
        emulateBetween = emulateBetween.map(sites -> sites.stream().map(List::copyOf).toList());
        emulateLinks = List.copyOf(emulateLinks);
    }

    /** Returns the links that are emulated. */
    public EmulatedLinks emulated() {
        var usual =
                new EmulatedLink(
                        emulateBandwidth
                                .map(Bandwidth::bytesPerSecond)
                                .orElse(Double.POSITIVE_INFINITY),
                        emulateLatency.toNanos(),
                        emulateLoss.share());
        return new EmulatedLinks(
                usual,
                emulateBetween.orElse(List.of()),
                emulateLinks.stream()
                        .collect(
                                Collectors.toMap(
                                        link -> new EmulatedLinks.Direction(link.from(), link.to()),
                                        link -> link.over(usual),
                                        (first, _) -> first)),
                emulateSeed);
    }

    /** Returns in which form boundary tensors travel. */
    public ChannelCodecs codecs() {
        return new ChannelCodecs(
                ofActivations().wire(topK),
                ofGradients().wire(topK),
                codecFromStage,
                errorFeedback,
                deltaRows);
    }

    /**
     * Returns in words how boundary tensors travel; empty if as they are.
     *
     * @param ranks of a pipeline
     * @param chunks stages of each
     */
    public Optional<String> codecWords(int ranks, int chunks) {
        boolean coded = codecs().activations().isPresent() || codecs().gradients().isPresent();
        return coded && codecFromStage < links(ranks, chunks)
                ? Optional.of(
                        "activations %s, gradients %s, from stage %d on"
                                        .formatted(
                                                words(ofActivations())
                                                        + (sendsDeltas()
                                                                ? " (deltas of %,d rows)"
                                                                        .formatted(deltaRows)
                                                                : ""),
                                                words(ofGradients()),
                                                codecFromStage)
                                + (keepsLosses() ? ", with error feedback" : ""))
                : Optional.empty();
    }

    private Codec ofActivations() {
        return codec.orElse(Codec.NONE);
    }

    private Codec ofGradients() {
        return gradientCodec.orElse(ofActivations());
    }

    /** Whether something of gradients is lost, and kept for the next step. */
    boolean keepsLosses() {
        return errorFeedback && codecs().gradients().isPresent();
    }

    /** Whether coded activations travel as deltas. */
    public boolean sendsDeltas() {
        return deltaRows > 0 && codecs().activations().isPresent();
    }

    private String words(Codec codec) {
        return switch (codec) {
            case NONE -> "as they are";
            case TOP_K ->
                    "%s of %s".formatted(word(codec), BigDecimal.valueOf(topK).toPlainString());
            case FP16, BF16, INT8, INT4 -> word(codec);
        };
    }

    private static String word(Codec codec) {
        return codec.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** Links between stages; none where a single rank has all of them. */
    private static int links(int ranks, int chunks) {
        return ranks == 1 ? 0 : ranks * chunks - 1;
    }

    /**
     * Returns in words which links are emulated; empty if none are.
     *
     * @param ranks of the run
     */
    public Optional<String> emulatedWords(int ranks) {
        EmulatedLinks links = emulated();
        if (!links.areEmulated() || ranks == 1) {
            return Optional.empty();
        }
        String others =
                emulateLinks.stream()
                        .map(
                                link ->
                                        "; from rank %d to rank %d %s"
                                                .formatted(
                                                        link.from(),
                                                        link.to(),
                                                        link.over(links.usual())))
                        .collect(Collectors.joining());
        return Optional.of(
                "%s, between %s%s"
                        .formatted(
                                links.usual(),
                                emulateBetween.map(sites -> "sites " + sites).orElse("all ranks"),
                                others));
    }

    /** Returns what is said of emulated links and has no effect, for people. */
    Optional<String> unusedLinksNote(int ranks) {
        boolean said = emulated().areEmulated() || emulateBetween.isPresent();
        if (!said) {
            return Optional.empty();
        }
        if (ranks == 1) {
            return Optional.of("data-plane.emulate has no effect: one rank sends nothing");
        }
        return emulated().areEmulated()
                ? Optional.empty()
                : Optional.of(
                        "data-plane.emulate.between has no effect: data-plane.emulate.bandwidth ="
                                + " real, and neither latency nor loss are given");
    }

    /** Returns what is said of codecs and has no effect, for people. */
    List<String> unusedNotes(int ranks, int chunks) {
        List<String> notes = new ArrayList<>();
        unusedCodecs(ranks, chunks).ifPresent(notes::add);
        boolean sendsLargest =
                ofActivations() == Codec.TOP_K
                        || gradientCodec.filter(c -> c == Codec.TOP_K).isPresent();
        if (topK != USUAL_SHARE && !sendsLargest) {
            notes.add(
                    "data-plane.top-k = %s has no effect: no codec is top-k"
                            .formatted(BigDecimal.valueOf(topK).toPlainString()));
        }
        if (errorFeedback && codecs().gradients().isEmpty()) {
            notes.add(
                    "data-plane.error-feedback = true has no effect: gradients travel as they are");
        }
        if (deltaRows > 0 && codecs().activations().isEmpty()) {
            notes.add(
                    "data-plane.delta-rows = %d has no effect: activations travel as they are"
                            .formatted(deltaRows));
        }
        return notes;
    }

    private Optional<String> unusedCodecs(int ranks, int chunks) {
        boolean coded = codecs().activations().isPresent() || codecs().gradients().isPresent();
        if (!coded) {
            return codecFromStage == 0
                    ? Optional.empty()
                    : Optional.of(
                            "data-plane.codec-from-stage = %d has no effect: data-plane.codec = none"
                                    .formatted(codecFromStage));
        }
        int links = links(ranks, chunks);
        return codecFromStage < links
                ? Optional.empty()
                : Optional.of(
                        "data-plane.%s has no effect: %s"
                                .formatted(
                                        ofActivations() == Codec.NONE
                                                ? "gradient-codec = " + word(ofGradients())
                                                : "codec = " + word(ofActivations()),
                                        links == 0
                                                ? "one rank has all stages and sends nothing"
                                                : "the last link begins at stage %d, data-plane.codec-from-stage = %d"
                                                        .formatted(links - 1, codecFromStage)));
    }

    /** The section of which nothing is written but the UDP port; 0: any. */
    public static DataPlaneSection usual(int port) {
        return new DataPlaneSection(
                new Bytes(8L << 20),
                65_504,
                Optional.empty(),
                Poller.ADAPTIVE,
                false,
                Transport.AUTO,
                Optional.empty(),
                port,
                Optional.empty(),
                Optional.empty(),
                new Bytes(8L << 20),
                new Bytes(2L << 20),
                new Bytes(2L << 20),
                false,
                Optional.empty(),
                true,
                Optional.empty(),
                Duration.ZERO,
                new FrameLoss(0),
                Optional.empty(),
                List.of(),
                1,
                Optional.of(Codec.NONE),
                Optional.empty(),
                0,
                USUAL_SHARE,
                false,
                0);
    }

    /** Whether a host was named that other machines can reach, for tensors to come in at. */
    public boolean isExposed() {
        return transport != Transport.IPC && host.isPresent() && !isLoopback(host.get());
    }

    /** Whether ranks may be on several hosts, if nodes say where they are reached. */
    public boolean mayCrossHosts() {
        return transport != Transport.IPC && (host.isEmpty() || !isLoopback(host.get()));
    }

    private static boolean isLoopback(String host) {
        try {
            return InetAddress.getByName(host).isLoopbackAddress();
        } catch (UnknownHostException e) {
            return false; // who can tell what it will mean
        }
    }

    /** How tensors travel: {@code auto} takes shared memory within a host, UDP between hosts. */
    public enum Transport {
        AUTO,
        IPC,
        UDP
    }

    /** In which form tensors travel: {@link WireCodec}, {@link TopK}. */
    public enum Codec {
        NONE,
        FP16,
        BF16,
        INT8,
        INT4,
        TOP_K;

        /** Returns the codec, of those that send all elements; empty for none. */
        public Optional<RowCodec> ofWholeRows() {
            return wire(1);
        }

        /**
         * @param share of elements that {@link #TOP_K} sends
         */
        Optional<RowCodec> wire(double share) {
            return switch (this) {
                case NONE -> Optional.empty();
                case FP16 -> Optional.of(WireCodec.FP16);
                case BF16 -> Optional.of(WireCodec.BF16);
                case INT8 -> Optional.of(WireCodec.INT8);
                case INT4 -> Optional.of(WireCodec.INT4);
                case TOP_K -> Optional.of(new TopK(share));
            };
        }
    }

    /** How the receiving thread waits: spin first, always sleep, or always spin. */
    public enum Poller {
        ADAPTIVE,
        SLEEPING,
        SPINNING
    }
}
