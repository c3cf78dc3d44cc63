// The peer of `kith bench embed` in ONNX Runtime: node embed_onnx.js MODEL.onnx BATCH SIZE THREADS STEPS
// Prints one JSON line with the keys of `kith bench embed --json` that both have. What is timed is a run on pixels in memory.
"use strict";
const path = require("path");
const ort = require(path.join(__dirname, "../test/onnx/node_modules/onnxruntime-node"));

async function main() {
    const [model, ...numbers] = process.argv.slice(2);
    const [batch, size, threads, steps] = numbers.map(Number);
    const session = await ort.InferenceSession.create(model, { intraOpNumThreads: threads, graphOptimizationLevel: "all" });
    const values = Float32Array.from({ length: batch * 3 * size * size }, () => 255 * Math.random());
    const feeds = { [session.inputNames[0]]: new ort.Tensor("float32", values, [batch, 3, size, size]) };
    for (let i = 0; i < 2; i++) await session.run(feeds);
    const seconds = [];
    for (let i = 0; i < steps; i++) {
        const began = process.hrtime.bigint();
        await session.run(feeds);
        seconds.push(Number(process.hrtime.bigint() - began) / 1e9);
    }
    seconds.sort((a, b) => a - b);
    const median = seconds[Math.floor(seconds.length / 2)];
    console.log(JSON.stringify({ bench: "embed", batch, size, threads, steps, images_per_second: batch / median, step_seconds: median,
        fastest_seconds: seconds[0], peak_rss_bytes: process.resourceUsage().maxRSS * 1024 }));
}

main().catch((why) => {
    console.error(String(why));
    process.exit(1);
});
