package dev.penstock.runtime.serve;

import dev.penstock.runtime.inference.TextRequest;
import java.util.List;

/**
 * What a request asks for.
 *
 * @param texts one for each choice of the answer
 * @param promptTokens of all prompts, each counted once
 * @param stops texts that end a choice; they are no part of it
 * @param closing what stands between a text and the token that ends it, and is no part of it
 * @param logProbabilities whether those of tokens are part of the answer
 * @param stream whether the answer comes as it grows
 * @param usage whether a stream ends with the counts of tokens
 */
record TextOrder(
        List<TextRequest> texts,
        int promptTokens,
        List<String> stops,
        String closing,
        boolean logProbabilities,
        boolean stream,
        boolean usage) {}
