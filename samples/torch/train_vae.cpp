// Recommends items by a variational autoencoder with multinomial likelihood, trained on rows of a
// sparse matrix with LibTorch:
//
//     h5pack csr ratings.csv -o ratings.h5ad --row-from userId --column-from movieId
//     chunkio-train-vae ratings.h5ad [HELD_OUT.h5ad]
//
// HELD_OUT has other users of the same items. A fifth of the items of each of these is hidden, and
// NDCG@100 says how well the network ranks them. The same program in Python:
// samples/python/train_vae.py.
//
// Liang, Krishnan, Hoffman, Jebara: "Variational Autoencoders for Collaborative Filtering", WWW
// 2018.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include <torch/nn.h>
#include <torch/optim/adam.h>

#include <chunkio/loader.hpp>
#include <chunkio/normalizer.hpp>

namespace {

constexpr std::int64_t kEpochs = 8;
constexpr std::int64_t kBatch = 500;
constexpr double kKlWeight = 0.2;
constexpr std::int64_t kBest = 100;

struct AutoencoderImpl : torch::nn::Module {
  explicit AutoencoderImpl(std::int64_t items, std::int64_t hidden = 600, std::int64_t latent = 200)
      : encoder(register_module(
            "encoder", torch::nn::Sequential(torch::nn::Linear(items, hidden), torch::nn::Tanh(),
                                             torch::nn::Linear(hidden, 2 * latent)))),
        decoder(register_module(
            "decoder", torch::nn::Sequential(torch::nn::Linear(latent, hidden), torch::nn::Tanh(),
                                             torch::nn::Linear(hidden, items)))) {}

  /// Scores of all items [B, items], and the divergence of the latent code from a standard normal
  /// distribution.
  std::pair<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x) {
    const torch::Tensor length = x.norm(2, 1, true).clamp_min(1e-12);
    const auto parts = encoder->forward(torch::dropout(x / length, 0.5, is_training())).chunk(2, 1);
    const torch::Tensor& mean = parts[0];
    const torch::Tensor& log_variance = parts[1];
    const torch::Tensor code =
        is_training() ? mean + torch::randn_like(mean) * (log_variance / 2).exp() : mean;
    const torch::Tensor divergence =
        0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean();
    return {decoder->forward(code), divergence};
  }

  torch::nn::Sequential encoder, decoder;
};
TORCH_MODULE(Autoencoder);

/// float32 [B, items]: 1 where a user has an item.
torch::Tensor dense(const chunkio::Batch& batch, const chunkio::Densifier& densify) {
  const chunkio::SparseTensor rows = batch.sparse();
  torch::Tensor x = torch::empty({rows.rows(), rows.columns});
  densify(rows, {static_cast<std::byte*>(x.data_ptr()), x.nbytes()});
  return x;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void train(Autoencoder& model, const chunkio::Dataset& data) {
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-3));
  chunkio::Loader loader(data, {.batch_size = kBatch, .seed = 7});
  const chunkio::Densifier densify(data.info().sparse->columns, {.binary = true});
  model->train();
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    double total = 0;
    for (const chunkio::Batch& batch : loader.epoch(epoch)) {
      const torch::Tensor x = dense(batch, densify);
      const auto [scores, divergence] = model->forward(x);
      const torch::Tensor loss =
          -(torch::log_softmax(scores, 1) * x).sum(1).mean() + kKlWeight * divergence;
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      total += loss.item<double>() * static_cast<double>(x.size(0));
    }
    const double users = static_cast<double>(data.size());
    std::printf("epoch %lld: loss %.1f, %.0f users/s, stall %.3f s\n",
                static_cast<long long>(epoch), total / users, users / seconds_since(start),
                loader.epoch_stats(epoch).stall_seconds);
    std::fflush(stdout);
  }
}

/// The mean over users of the normalised discounted cumulative gain of hidden items among the first
/// kBest.
double ndcg(Autoencoder& model, const chunkio::Dataset& data) {
  const torch::NoGradGuard no_gradients;
  model->eval();
  const torch::Tensor discount = 1 / torch::arange(2, kBest + 2).to(torch::kFloat).log2();
  const chunkio::Densifier densify(data.info().sparse->columns, {.binary = true});
  chunkio::Loader loader(data,
                         {.batch_size = kBatch, .order = {.mode = chunkio::OrderMode::sequential}});
  double total = 0;
  std::int64_t users = 0;
  for (const chunkio::Batch& batch : loader.epoch(0)) {
    const torch::Tensor x = dense(batch, densify) > 0;
    const torch::Tensor hidden = x & (torch::rand(x.sizes()) < 0.2);
    const torch::Tensor known = x & ~hidden;
    torch::Tensor scores = model->forward(known.to(torch::kFloat)).first;
    scores.masked_fill_(known, -std::numeric_limits<float>::infinity());
    const torch::Tensor found = hidden.gather(1, std::get<1>(scores.topk(kBest)));
    const torch::Tensor counted = hidden.any(1);
    const torch::Tensor ideal =
        discount.cumsum(0).index({hidden.index({counted}).sum(1).clamp_max(kBest) - 1});
    total += ((found.index({counted}) * discount).sum(1) / ideal).sum().item<double>();
    users += counted.sum().item<std::int64_t>();
  }
  return total / static_cast<double>(users);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: chunkio-train-vae RATINGS.h5ad [HELD_OUT.h5ad]\n");
    return 2;
  }
  try {
    torch::manual_seed(7);
    const chunkio::Dataset data = chunkio::Dataset::open(argv[1]);
    const chunkio::Dataset held_out = chunkio::Dataset::open(argv[argc - 1]);
    for (const chunkio::Dataset* opened : {&data, &held_out}) {
      if (opened->info().sparse) continue;
      std::fprintf(stderr, "chunkio-train-vae: %s has no sparse matrix; h5pack csr makes one\n",
                   opened->info().path.c_str());
      return 1;
    }
    Autoencoder model(data.info().sparse->columns);
    train(model, data);
    std::printf("NDCG@100 %.3f of %lld users\n", ndcg(model, held_out),
                static_cast<long long>(held_out.size()));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chunkio-train-vae: %s\n", error.what());
    return 1;
  }
}
