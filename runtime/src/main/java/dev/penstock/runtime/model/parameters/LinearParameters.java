package dev.penstock.runtime.model.parameters;

import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The parameters of {@code y = x weight + bias}: weight {@code [in, out]} (Hugging Face's Conv1D),
 * bias {@code [out]}, null where there is none.
 *
 * @param adapters low-rank branches beside it
 */
public record LinearParameters(
        Parameter weight, @Nullable Parameter bias, List<AdapterParameters> adapters) {

    Stream<Parameter> all() {
        return Stream.of(
                        bias == null ? Stream.of(weight) : Stream.of(weight, bias),
                        adapters.stream().flatMap(a -> Stream.of(a.inner(), a.outer())))
                .flatMap(each -> each);
    }
}
