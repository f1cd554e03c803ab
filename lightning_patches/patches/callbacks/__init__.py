"""Lightning's own callbacks: averaging of weights, finetuning, the rich progress bar."""
